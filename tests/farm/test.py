#!/usr/bin/env python3
"""The farm's own parts: what counts as equal tests, the list, the page. Needs no network and builds nothing."""

import os
import tempfile
import unittest
from pathlib import Path

import farm
import outcomes
import page
import projects
import recipes
from farm import NoSource, Sources


def step(status=0):
    return {"status": status, "seconds": 1.0}


def result(native, fenced, by="lines", status=(0, 0)):
    kinds = {}
    for kind, found, ended in (("native", native, status[0]), ("fenced", fenced, status[1])):
        kinds[kind] = {"configure": step(), "build": step(), "tests": step(ended), "by": by, "outcomes": found, "none": False}
    return {"package": "p", "version": "1", **kinds}


class Outcomes(unittest.TestCase):
    def verdict(self, *args, **more):
        return outcomes.judge(result(*args, **more))["tests"]

    def test_equal_is_equal_test_by_test(self):
        self.assertEqual(self.verdict({"a": "PASS", "b": "FAIL"}, {"a": "PASS", "b": "FAIL"}, status=(2, 2)), "equal")
        self.assertEqual(self.verdict({"a": "PASS", "b": "FAIL"}, {"a": "FAIL", "b": "PASS"}, status=(2, 2)), "differ")
        self.assertEqual(self.verdict({"a": "PASS", "b": "PASS"}, {"a": "PASS"}), "differ")
        self.assertEqual(self.verdict({"a": "PASS"}, {"a": "PASS", "b": "PASS"}), "differ")
        self.assertEqual(self.verdict({"a": "PASS"}, {"a": "PASS"}, status=(0, 1)), "differ")
        self.assertEqual(self.verdict({"a": "PASS"}, {"a": "PASS"}, status=(0, None)), "differ")

    def test_what_says_nothing_natively_is_not_equal(self):
        self.assertEqual(self.verdict({"a": "FAIL"}, {"a": "FAIL"}), "not natively")
        self.assertEqual(self.verdict({"0": "boom"}, {"0": "boom"}, by="output", status=(2, 2)), "not natively")
        self.assertEqual(self.verdict({}, {}, by="output"), "none")
        self.assertEqual(self.verdict({"0": "fine"}, {"0": "fine"}, by="output"), "equal")
        self.assertEqual(self.verdict({"0": "fine"}, {"0": "fault"}, by="output"), "differ")

    def test_what_varies_natively_is_not_compared(self):
        first, second = {0: "salt 1", 1: "fine"}, {0: "salt 2", 1: "fine"}
        free = outcomes.varies(first, second)
        self.assertEqual(free, ["0"])
        self.assertEqual(outcomes.varies(first, {0: "salt 2"}), [])
        for fenced, want in (({0: "salt 3", 1: "fine"}, "equal"), ({0: "salt 3", 1: "bad"}, "differ"), ({0: "salt 3"}, "differ")):
            found = result(first, fenced, by="output")
            found["native"]["varies"] = free
            self.assertEqual(outcomes.judge(found)["tests"], want)

    def test_progress_is_overwritten(self):
        self.assertEqual(outcomes.normal("\rRead : 8 MiB   ==> 45.55%   \nb\n1 byte copied, 25.7 kB/s"), ["b", "1 byte copied, <measure>"])
        self.assertEqual(outcomes.normal("a\r\nRead : 1 MiB\rRead : 2 MiB\r \rdone b\n\rc"), ["a", "done b", "c"])

    def test_a_build_that_ends(self):
        found = result({"a": "PASS"}, {"a": "PASS"})
        found["fenced"] = {"configure": step(), "build": step(2)}
        self.assertEqual(outcomes.judge(found)["said"], "fenced, build ends with 2")
        found["native"] = {"configure": step(None)}
        self.assertEqual(outcomes.judge(found)["builds"], "not natively")

    def test_the_ways_to_tell(self):
        self.assertEqual(outcomes.lines("PASS: one\nFAIL: one\nXPASS: two (exit status: 1)\n"), {"one": "PASS", "one (2)": "FAIL", "two": "XPASS"})
        self.assertEqual(outcomes.lines("[ RUN      ] A.b\n[       OK ] A.b (12 ms)\n[  FAILED  ] A.c (0 ms)\n"), {"A.b": "OK", "A.c": "FAILED"})
        self.assertEqual(outcomes.lines("1..2\nok 1 - in 3 ms\nnot ok 2 x\n"), {"1 in <measure>": "ok", "2 x": "not ok"})
        with tempfile.TemporaryDirectory() as name:
            work = Path(name)
            (work / "t").mkdir()
            (work / "t/a.trs").write_text(":test-result: PASS\n:global-test-result: PASS\n")
            (work / "t/b.trs").write_text(":test-result: PASS first\n:test-result: FAIL second\n")
            self.assertEqual(outcomes.automake(work), {"t/a": "PASS", "t/b first": "PASS", "t/b second": "FAIL"})
            (work / "j.xml").write_text('<testsuite><testcase name="x" status="run"/><testcase name="y" status="fail"/></testsuite>')
            self.assertEqual(outcomes.ctest(work / "j.xml"), {"x": "run", "y": "fail"})
            (work / "m.json").write_text('{"name": "x", "result": "OK"}\n')
            self.assertEqual(outcomes.meson(work / "m.json"), {"x": "OK"})

    def test_output_without_what_varies(self):
        one = "make[1]: Entering\nMaking check in src\ngcc -o t t.c\nt.c:1:2: warning: odd\n  1 | x\nran 12 in 0.25 seconds at 0x7fff1234abcd\n"
        other = 'ringfence-cc --wrapper -DX -o t t.c\nran 12 in 1.5 seconds at 0x200012345678\n'
        self.assertEqual(outcomes.normal(one), ["ran 12 in <measure> at <address>"])
        self.assertEqual(outcomes.normal(one), outcomes.normal(other))
        self.assertNotEqual(outcomes.normal(one), outcomes.normal(other.replace("ran 12", "ran 11")))

    def test_no_line_tells_where_it_was_built(self):
        one = projects.read("a kind make")[0]
        with tempfile.TemporaryDirectory() as name:
            log = Path(name) / "native-tests.log"
            log.write_text(f"make check\nscript {name}/work/a.ed exited\nnot ok 1 {name}/work/b\n")
            self.assertEqual(outcomes.of(one, Path(name) / "work", log), ("lines", {"1 <work>/b": "not ok"}))
            log.write_text(f"make check\nscript {name}/work/a.ed exited\n")
            self.assertEqual(outcomes.of(one, Path(name) / "work", log), ("output", {0: "script <work>/a.ed exited"}))


class Recipes(unittest.TestCase):
    def test_the_list(self):
        listed = projects.load()
        self.assertGreaterEqual(len(listed), 60)
        one = projects.read("a  kind  make:lib/x  V=1 LD={cxx}  : make test CC={cc}\n")[0]
        self.assertEqual((one.directory, one.options, one.test), ("lib/x", ("V=1", "LD={cxx}"), "make test CC={cc}"))
        for wrong in ("a kind\n", "a kind ant\n", "a k make\na k make\n"):
            with self.assertRaises(ValueError):
                projects.read(wrong)

    def test_compilers_are_put_in(self):
        with tempfile.TemporaryDirectory() as name:
            one = projects.read("a kind make LD={cxx} : make test CC={cc}")[0]
            _, build, test = recipes.commands(one, Path(name), True)
            self.assertEqual(build, 'make CC="ringfence-cc --wrapper" CXX="ringfence-c++ --wrapper" LD="ringfence-c++ --wrapper"')
            self.assertEqual(test, 'make test CC="ringfence-cc --wrapper"')
            one = projects.read("a kind autoconf")[0]
            self.assertIn('./configure CC="ringfence-cc --wrapper" CXX="ringfence-c++ --wrapper" --disable-shared', recipes.commands(one, Path(name), True)[0])

    def test_what_patches_have_changed_is_made_anew(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            one = projects.read("a kind autoconf")[0]
            again = lambda: "autoreconf" in recipes.commands(one, folder, False)[0]
            for number, file in enumerate(("configure.ac", "configure", "Makefile.am", "Makefile.in")):
                self.assertTrue(again() or number > 1)
                (folder / file).touch()
                os.utime(folder / file, (number, number))
            self.assertFalse(again())
            os.utime(folder / "Makefile.am", (9, 9))
            self.assertTrue(again())

    def test_a_step_has_a_time_limit_and_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as name:
            env = recipes.environment(Path("/nowhere"), Path(name) / "home")
            log = Path(name) / "log"
            self.assertEqual(recipes.run("exit 3", name, log, 60, env)[0], 3)
            self.assertIsNone(recipes.run("sleep 600 & sleep 600", name, log, 0.2, env)[0])
            self.assertEqual(recipes.run("sh -c 'kill -9 $$'; exit $?", name, log, 60, env)[0], 137)

    def test_no_source(self):
        with tempfile.TemporaryDirectory() as name:
            sources = Sources(Path(name))
            sources.lists = lambda: None
            sources.versions = lambda package: []
            with self.assertRaises(NoSource):
                sources.fetch("p")


class Alone(unittest.TestCase):
    def test_two_farms_do_not_share_a_directory(self):
        with tempfile.TemporaryDirectory() as name:
            place = Path(name) / "lock"
            with farm.alone(place):
                with self.assertRaisesRegex(farm.BusyFarm, f"process {os.getpid()}.*--out"):
                    with farm.alone(place):
                        self.fail("two at once")
            with farm.alone(place):
                self.assertIn(str(os.getpid()), place.read_text())


class Page(unittest.TestCase):
    def test_reasons_fit_the_results(self):
        first, second = (p.package for p in projects.load()[:2])
        differs = {"builds": "yes", "tests": "differ", "said": "1 of 2 differ", "by": "lines", "count": 2, "version": "1"}
        equal = differs | {"tests": "equal", "said": ""}
        kept = {"machine": "m", "projects": {first: differs, second: equal}}
        self.assertEqual(len(list(page.mistakes(kept, {}))), 1)
        self.assertEqual(list(page.mistakes(kept, {first: "no fork"})), [])
        self.assertEqual(len(list(page.mistakes(kept, {first: "no fork", second: "none"}))), 1)
        self.assertEqual(len(list(page.mistakes({"projects": {"nobody": equal}}, {}))), 1)
        text = page.render(kept, {first: "no fork"})
        self.assertIn("no fork", text)
        self.assertIn("not run yet", text)
        with self.assertRaises(ValueError):
            page.reasons("a\n")

    def test_worse(self):
        equal, differ = {"builds": "yes", "tests": "equal"}, {"builds": "yes", "tests": "differ"}
        self.assertTrue(farm.worse(differ, equal))
        self.assertTrue(farm.worse({"builds": "no", "tests": ""}, differ))
        self.assertFalse(farm.worse(equal, differ))
        self.assertFalse(farm.worse({"builds": "no source", "tests": ""}, equal))


if __name__ == "__main__":
    unittest.main()
