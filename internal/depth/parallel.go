package depth

import (
	"flag"
	"strconv"
)

// Parallel has up to so many parallel tests run at once, unless the flag -parallel says otherwise. It is for packages
// whose tests mostly wait. A TestMain calls Parallel before it runs the tests.
func Parallel(tests int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(tests)) // an error would be one of strconv's
	}
}
