package depth

import (
	"flag"
	"runtime/debug"
	"slices"
	"strconv"
)

// Parallel sets how many parallel tests run at once, unless the flag -parallel sets it: this many, or half of them with
// the race detector. It is for packages whose tests mostly wait. A TestMain calls Parallel before it runs the tests.
func Parallel(tests int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if Raced() {
		tests /= 2
	}
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(tests)) // an error would be one of strconv's
	}
}

// Raced reports whether the race detector watches the tests, so that they take several times as long.
func Raced() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// BuildFlags returns -race if the race detector watches the tests, and otherwise nothing. A test that builds a program
// with these flags shares the packages that are compiled for the test.
func BuildFlags() []string {
	if Raced() {
		return []string{"-race"}
	}
	return nil
}
