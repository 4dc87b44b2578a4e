//! A command on a terminal of its own.

use std::fs::File;
use std::process::{Child, Command, Stdio};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::common::House;

/// Starts a command on a terminal of its own; gives the other end of that.
pub(crate) fn at_a_terminal(house: &House, args: &[&str]) -> (Child, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&master).expect("granted");
    unlockpt(&master).expect("unlocked");
    let name = ptsname(&master, Vec::new()).expect("a name");
    let tty = || -> File {
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        open(name.as_c_str(), flags, Mode::empty())
            .expect("opens")
            .into()
    };
    let plain = house.command(&[]);
    // A session of its own, with the terminal as its own.
    let mut command = Command::new("setsid");
    command
        .args(["--ctty", "--wait"])
        .arg(plain.get_program())
        .args(args)
        .env_clear()
        .current_dir(house.workspace())
        .stdin(tty())
        .stdout(Stdio::piped())
        .stderr(tty());
    for (name, value) in plain.get_envs() {
        command.env(name, value.expect("set"));
    }
    let child = command.spawn().expect("starts");
    (child, File::from(master))
}
