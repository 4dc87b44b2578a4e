//! What the running kernel has.

use serde::Serialize;

use crate::view::{self, Views};

/// Whether the kernel has something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Has {
    /// It has.
    Yes,
    /// It has not, or it is switched off.
    No,
}

/// What a kernel can hold commands with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Kernel {
    /// Landlock's version, 0 without it.
    pub landlock_abi: u32,
    /// Filters over system calls.
    pub seccomp: Has,
    /// Views of the file system.
    pub views: Views,
}

/// From this version on Landlock keeps signals and abstract sockets inside.
pub const ABI_WITH_SCOPES: u32 = 6;

impl Kernel {
    /// Asks the running kernel.
    ///
    /// ```
    /// let kernel = holdfast_confine::Kernel::probe();
    /// println!("Landlock version {}", kernel.landlock_abi);
    /// ```
    pub fn probe() -> Self {
        Self {
            landlock_abi: landlock_abi(),
            seccomp: seccomp(),
            views: view::probe(),
        }
    }

    /// Whether it can keep a command's hands off files.
    pub fn confines_files(self) -> bool {
        self.landlock_abi > 0
    }
}

#[expect(unsafe_code, reason = "no safe wrapper asks for the version alone")]
fn landlock_abi() -> u32 {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the call takes no pointer and makes nothing; it returns a number.
    let abi = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0_usize,
            VERSION,
        )
    };
    u32::try_from(abi).unwrap_or(0)
}

#[expect(
    unsafe_code,
    reason = "no safe wrapper asks whether a filter could be set"
)]
fn seccomp() -> Has {
    let action: u32 = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the call reads one number of ours and changes nothing.
    let asked = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_ACTION_AVAIL,
            0,
            &raw const action,
        )
    };
    if asked == 0 { Has::Yes } else { Has::No }
}
