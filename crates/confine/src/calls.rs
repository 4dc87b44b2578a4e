//! The system calls that a command is refused.
//!
//! A list of what is refused and not of what is allowed: commands are compilers, browsers and
//! whatever people write, and a list of what all of them need would be a list of nearly everything.
//! Refused is what reaches into other processes, changes what is mounted, opens the kernel to more
//! than files and sockets, or goes around the other rules.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use crate::ConfineError;
use crate::plan::{Network, Plan, UnixSockets};

/// Refused whatever their arguments.
const REFUSED: &[libc::c_long] = &[
    // Into other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // What is mounted, and namespaces of one's own in which that could be changed.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    // Files by number instead of by path.
    libc::SYS_open_by_handle_at,
    // Keys, and parts of the kernel with a long record of holes.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    // Makes sockets and opens files without a system call that could be refused.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // The machine itself.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// Each makes `clone` start a process in a namespace of its own.
const NAMESPACES: &[libc::c_int] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// They type into a terminal for the person who sits at it.
const TYPING: &[u64] = &[libc::TIOCSTI, libc::TIOCLINUX];

/// The part of a socket's type that is its kind; the rest are flags.
const SOCKET_KIND: u64 = 0xf;

/// The kind by which packets were read before there was a family for them; the C library gives it
/// no name everywhere.
const SOCK_PACKET: libc::c_int = 10;

/// How these calls name whoever makes them.
const ITSELF: u64 = 0;

/// All processes of a user, where priorities of disks are set; the C library has no name for it.
const IOPRIO_WHO_USER: u64 = 3;

/// The filters, in the order they are laid on.
pub(crate) fn filters(plan: &Plan) -> Result<Vec<BpfProgram>, ConfineError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_socket, sockets(plan)?);
    if plan.unix_sockets == UnixSockets::Deny {
        rules.insert(libc::SYS_socketpair, pairs()?);
    }
    let namespaces = NAMESPACES.iter().map(|flag| {
        let flag = u64::from(flag.unsigned_abs());
        rule(vec![when(0, SeccompCmpOp::MaskedEq(flag), flag)?])
    });
    rules.insert(libc::SYS_clone, namespaces.collect::<Result<_, _>>()?);
    let typing = TYPING
        .iter()
        .map(|request| rule(vec![when(1, SeccompCmpOp::Eq, *request)?]));
    rules.insert(libc::SYS_ioctl, typing.collect::<Result<_, _>>()?);
    rules.extend(limits()?);
    rules.extend(priorities()?);
    let refusing = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM.unsigned_abs()),
        TargetArch::try_from(std::env::consts::ARCH)?,
    )?;
    Ok(vec![unknown(), refusing.try_into()?])
}

/// Every kind of a pair of sockets but streams and packets in their order. One end of a pair of
/// datagrams could be connected to any path, and the kernel makes datagrams of the raw kind too.
fn pairs() -> Result<Vec<SeccompRule>, ConfineError> {
    let allowed =
        [libc::SOCK_STREAM, libc::SOCK_SEQPACKET].map(|kind| u64::from(kind.unsigned_abs()));
    let refused = (0..=SOCKET_KIND).filter(|kind| !allowed.contains(kind));
    let rules = refused.map(|kind| rule(vec![when(1, SeccompCmpOp::MaskedEq(SOCKET_KIND), kind)?]));
    rules.collect()
}

/// Setting the limit that is the mark, and setting any limit of another process: with a processor
/// time of none the kernel ends that process, whoever may not signal it. Asking goes on.
fn limits() -> Result<[(i64, Vec<SeccompRule>); 2], ConfineError> {
    let marked = u64::from(libc::RLIMIT_RTTIME);
    let sets = || SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0);
    let own = vec![rule(vec![when(0, SeccompCmpOp::Eq, marked)?])?];
    let anybodys = vec![
        rule(vec![when(1, SeccompCmpOp::Eq, marked)?, sets()?])?,
        rule(vec![when(0, SeccompCmpOp::Ne, ITSELF)?, sets()?])?,
    ];
    Ok([(libc::SYS_setrlimit, own), (libc::SYS_prlimit64, anybodys)])
}

/// Setting how much of the machine another process gets. Which processors a thread runs on is left
/// out: programs set that for threads of their own, by number, and nothing ends or starves of it.
fn priorities() -> Result<Vec<(i64, Vec<SeccompRule>)>, ConfineError> {
    let others = |argument| rule(vec![when(argument, SeccompCmpOp::Ne, ITSELF)?]);
    let mut rules = Vec::new();
    for call in [
        libc::SYS_sched_setparam,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setattr,
    ] {
        rules.push((call, vec![others(0)?]));
    }
    // A user's number stands for all processes of that user; none stands for its own.
    for (call, of_user) in [
        (libc::SYS_setpriority, u64::from(libc::PRIO_USER)),
        (libc::SYS_ioprio_set, IOPRIO_WHO_USER),
    ] {
        let everybody = rule(vec![when(0, SeccompCmpOp::Eq, of_user)?])?;
        rules.push((call, vec![everybody, others(1)?]));
    }
    Ok(rules)
}

/// Every family of sockets but those that are allowed, and of the Internet's families the kinds that
/// see what others send: root would read every token on its way over loopback.
fn sockets(plan: &Plan) -> Result<Vec<SeccompRule>, ConfineError> {
    let mut rules = vec![families(plan)?];
    for family in [libc::AF_INET, libc::AF_INET6] {
        for kind in [libc::SOCK_RAW, SOCK_PACKET] {
            let kind = u64::from(kind.unsigned_abs());
            rules.push(rule(vec![
                when(0, SeccompCmpOp::Eq, u64::from(family.unsigned_abs()))?,
                when(1, SeccompCmpOp::MaskedEq(SOCKET_KIND), kind)?,
            ])?);
        }
    }
    Ok(rules)
}

/// Every family of sockets but those that are allowed.
fn families(plan: &Plan) -> Result<SeccompRule, ConfineError> {
    // The C library asks the kernel about interfaces through netlink.
    let mut allowed = vec![libc::AF_NETLINK];
    if plan.network == Network::Allow {
        allowed.extend([libc::AF_INET, libc::AF_INET6]);
    }
    if plan.unix_sockets == UnixSockets::Allow {
        allowed.push(libc::AF_UNIX);
    }
    let others = allowed
        .iter()
        .map(|family| when(0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs())));
    rule(others.collect::<Result<_, _>>()?)
}

fn when(argument: u8, is: SeccompCmpOp, value: u64) -> Result<SeccompCondition, ConfineError> {
    // The kernel looks at the lower half of these arguments only, and so does the filter.
    let length = SeccompCmpArgLen::Dword;
    Ok(SeccompCondition::new(argument, length, is, value)?)
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, ConfineError> {
    Ok(SeccompRule::new(conditions)?)
}

/// Calls that are answered as if the kernel did not know them, so that programs take the older way:
/// `clone3`, whose flags lie where a filter can not look, and every call of the x32 interface, under
/// whose numbers no other rule would be found.
fn unknown() -> BpfProgram {
    const LOAD: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const X32: u32 = 0x4000_0000;
    let line = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        line(LOAD, 0, 0, 0),
        line(JUMP_IF_AT_LEAST, 1, 0, X32),
        line(
            JUMP_IF_EQUAL,
            0,
            1,
            u32::try_from(libc::SYS_clone3).unwrap_or(u32::MAX),
        ),
        line(
            RETURN,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs(),
        ),
        line(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}
