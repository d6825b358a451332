//! Symbolic links: made where a policy grants it, followed within what it grants.

mod common;

use common::Dir;

const HEAD: &str = r#"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#define CHECK(x) do { if (!(x)) { printf("line %d: %s: %s\n", __LINE__, #x, strerror(errno)); exit(90); } } while (0)
#define FAILS(e, x) CHECK((x) == -1 && errno == (e))
static char text[8192];
static int reads(const char *name, const char *what)
{
	int fd = open(name, O_RDONLY);
	if (fd < 0) return -1;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n < 0 ? 0 : n] = 0;
	return strcmp(text, what) ? 1 : 0;
}
"#;

#[test]
fn links_are_made_where_that_is_granted() {
    let d = Dir::new();
    d.sh("mkdir w r; echo -n read > r/file; echo -n outside > outside")
        .ok();
    let body = r#"
int main(void)
{
	struct stat s;
	CHECK(symlink("one", "/w/link") == 0 && readlink("/w/link", text, sizeof text) == 3 && !memcmp(text, "one", 3));
	CHECK(lstat("/w/link", &s) == 0 && S_ISLNK(s.st_mode) && stat("/w/link", &s) == -1 && errno == ENOENT);
	FAILS(EEXIST, symlink("two", "/w/link"));
	FAILS(EROFS, symlink("two", "/r/link"));
	FAILS(ENOENT, symlink("", "/w/empty"));
	FAILS(ENOENT, symlink("x", "/elsewhere/link"));
	FAILS(EFAULT, symlink(0, "/w/null"));
	memset(text, 'a', sizeof text - 1);
	FAILS(ENAMETOOLONG, symlink(text, "/w/long"));
	int dir = open("/w", O_RDONLY | O_DIRECTORY);
	CHECK(dir >= 0 && symlinkat("/r/file", dir, "absolute") == 0 && reads("/w/absolute", "read") == 0);
	/* It gives no right that its end has not. */
	FAILS(EROFS, open("/w/absolute", O_WRONLY));
	FAILS(EROFS, truncate("/w/absolute", 0));
	/* Out of all that was granted, by any way. */
	CHECK(symlink("../outside", "/w/up") == 0 && symlink("/etc", "/w/etc") == 0 && symlink("..", "/w/parent") == 0);
	FAILS(EACCES, open("/w/up", O_RDONLY));
	FAILS(EACCES, open("/w/up", O_WRONLY | O_CREAT, 0600));
	FAILS(EACCES, open("/w/etc/passwd", O_RDONLY));
	FAILS(EACCES, open("/w/parent/outside", O_RDONLY));
	CHECK(reads("/w/parent/r/file", "read") == 0);
	FAILS(ELOOP, open("/w/absolute", O_RDONLY | O_NOFOLLOW));
	/* Through a link that is not there yet. */
	CHECK(symlink("/w/new", "/w/dangling") == 0);
	int fd = open("/w/dangling", O_WRONLY | O_CREAT, 0600);
	CHECK(fd >= 0 && write(fd, "made", 4) == 4 && reads("/w/new", "made") == 0);
	/* They are removed and renamed as such. */
	CHECK(rename("/w/up", "/w/renamed") == 0 && unlink("/w/renamed") == 0 && unlink("/w/absolute") == 0);
	CHECK(reads("/r/file", "read") == 0);
	/* Round in circles, and too long a way. */
	CHECK(symlink("/w/b", "/w/a") == 0 && symlink("/w/a", "/w/b") == 0);
	FAILS(ELOOP, open("/w/a", O_RDONLY));
	CHECK(symlink("/w", "/w/self") == 0);
	strcpy(text, "/w");
	for (int i = 0; i < 39; i++) strcat(text, "/self");
	strcat(text, "/new");
	CHECK(stat(text, &s) == 0);
	strcpy(text, "/w");
	for (int i = 0; i < 41; i++) strcat(text, "/self");
	FAILS(ELOOP, stat(text, &s));
	strcpy(text, "/w/self");
	for (int i = 0; i < 300; i++) strcat(text, "/.././w");
	FAILS(ELOOP, stat(text, &s));
	puts("done");
	return 0;
}
"#;
    d.program(&format!("{HEAD}{body}"));
    let grants = "--dir w:/w --dir r:/r:ro";
    let ran = d.sh(&format!("$RF run --symlinks {grants} p.rf")).ok();
    assert_eq!(ran.out, "done\n");
    assert_eq!(d.read("outside"), b"outside");
    let refused = d.sh(&format!("rm -rf w; mkdir w; $RF run {grants} p.rf"));
    assert!(refused.out.contains("Operation not permitted"), "{}", refused.out);
    assert!(!d.exists("w/link"));
}

/// As natively: links of the machine's own, which mostly are absolute, and from one file system to another.
#[test]
fn a_native_start_follows_all_links() {
    let d = Dir::new();
    d.write("file", "here");
    d.sh("mkdir -p a/b; ln -s \"$PWD/file\" absolute; ln -s /dev/shm/../.. root; ln -s \"$PWD/a\" way; ln -s ../../file a/b/up").ok();
    let body = r#"
int main(int argc, char **argv)
{
	char here[4096], name[8192];
	CHECK(getcwd(here, sizeof here) && reads("absolute", "here") == 0 && reads("way/b/up", "here") == 0);
	snprintf(name, sizeof name, "root%s/way/b/../b/up", here);
	CHECK(reads(name, "here") == 0);
	CHECK(symlink("way", "made") == 0 && reads("made/b/up", "here") == 0 && unlink("made") == 0);
	CHECK(chdir("way") == 0 && reads("b/up", "here") == 0);
	return 0;
}
"#;
    d.program(&format!("{HEAD}{body}"));
    d.sh("$RF run --native p.rf").ok();
}
