//! A binding in Rust: `host MODULE`.

#[path = "kinds_fenced.rs"]
mod kinds;

use core::ffi::{CStr, c_char, c_void};
use std::ffi::CString;
use std::sync::atomic::{AtomicI32, Ordering};

static FAILURES: AtomicI32 = AtomicI32::new(0);

unsafe extern "C" fn told(_: *const c_void) {
    FAILURES.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" fn visit(context: *mut c_void, name: *const c_char, _: *const u8, length: i32) -> i32 {
    let seen = unsafe { &mut *context.cast::<Vec<String>>() };
    seen.push(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned());
    length
}

fn main() {
    let module = CString::new(std::env::args().nth(1).expect("a module")).unwrap();
    unsafe {
        kinds::kinds_fence_on_failure(Some(told));
        assert_eq!(kinds::kinds_fence_open(module.as_ptr()), 0);
        assert_eq!((kinds::KINDS_MOST, kinds::KINDS_NONE, kinds::KINDS_VERSION), (16, -1, c"1.2"));
        let k = kinds::kinds_create(c"ring".as_ptr(), kinds::KINDS_GREEN);
        assert_eq!(CStr::from_ptr(kinds::kinds_name(k)), c"ring");
        assert_eq!(kinds::kinds_sum([1, 2, 39].as_ptr(), 3), 42);
        let mut point = kinds::kinds_point { x: 1, y: 2, weight: 1.5 };
        kinds::kinds_move(&mut point, 10, 20);
        assert_eq!((point.x, point.y, point.weight), (11, 22, 3.0));
        let mut seen = Vec::<String>::new();
        assert_eq!(kinds::kinds_visit_all(k, Some(visit), (&raw mut seen).cast()), 3);
        assert_eq!(seen, ["one", "ring"]);
        assert_eq!(kinds::kinds_crash(&mut 1), 0);
        assert_eq!(FAILURES.load(Ordering::Relaxed), 1);
        assert_eq!(kinds::kinds_fence_reset(), 0);
        assert_eq!(kinds::kinds_live(), 0);
        kinds::kinds_fence_close();
    }
    println!("host.rs: ok");
}
