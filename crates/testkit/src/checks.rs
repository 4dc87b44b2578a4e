//! Checks of a conformance suite as tests.

/// Makes a test of every check: `for_each_store_check!(tests_of_checks, conformance, Memory)` calls
/// it with the module of the checks, the factory and their names.
#[macro_export]
macro_rules! tests_of_checks {
    ([$checks:ident, $factory:expr] $($check:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                $checks::$check(&$factory).await;
            }
        )*
    };
}

/// Runs all checks one after another, where what they share takes long to make.
#[macro_export]
macro_rules! checks_in_turn {
    ([$checks:ident, $factory:expr] $($check:ident)*) => {
        $(
            println!("{}", stringify!($check));
            $checks::$check(&$factory).await;
        )*
    };
}
