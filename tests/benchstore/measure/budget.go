package measure

import (
	"fmt"
	"time"
)

// MinBudget is the shortest time that Budget accepts.
const MinBudget = 10 * time.Second

// Budget parses the time of a whole run, such as "8m" or "40s".
func Budget(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("BENCH_TIME %q is no time; write it like 8m or 40s", text)
	}
	if d < MinBudget {
		return 0, fmt.Errorf("BENCH_TIME %v is too short; give %v or more", d, MinBudget)
	}
	return d, nil
}
