package fence_test

import (
	"errors"
	"fmt"

	"github.com/fencedkv/fencedkv/fencedkv/fence"
)

// A guard of your own keeps the highest mark beside its data and asks Admit
// before each write.
func ExampleAdmit() {
	var highest fence.Mark

	for _, n := range []uint64{33, 34, 33} {
		offered := fence.Number(n)
		raise, err := fence.Admit("accounts/42", offered, highest)
		var rejected *fence.RejectedError
		if errors.As(err, &rejected) {
			fmt.Println("refused", rejected.Offered, "after", rejected.Mark.Token)
			continue
		}
		if raise {
			highest = fence.Mark{Token: offered} // durably, with the write
		}
		fmt.Println("admitted", offered)
	}
	// Output:
	// admitted 33
	// admitted 34
	// refused 33 after 34
}
