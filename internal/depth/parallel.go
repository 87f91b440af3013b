package depth

import (
	"flag"
	"strconv"
)

// Parallel sets how many parallel tests run at once, unless the flag -parallel sets it. It is for packages whose tests
// mostly wait. A TestMain calls Parallel before it runs the tests.
func Parallel(tests int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(tests)) // an error would be one of strconv's
	}
}
