package rivals

import "github.com/fencedkv/fencedkv/tests/benchstore/measure"

// comparison is one ratio: who is compared with whom, in what. Without theirs it
// is a value of ours alone.
type comparison struct {
	name, in, theirs string
	value            measure.Value
	bound            measure.Bound
}

var comparisons = []comparison{
	{"acquire-redislock", "acquire-redis", "redislock", measure.P50, measure.AtMost(1.25)},
	{"acquire-redsync1", "acquire-redis", "redsync", measure.P50, measure.AtMost(1.1)},
	{"acquire-redsync5", "acquire-redlock", "redsync", measure.P50, measure.AtMost(1.15)},
	{"acquire-etcd", "acquire-etcd", "mutex", measure.P50, measure.AtMost(1.1)},
	{"acquire-etcd-session", "acquire-etcd", "session", measure.P50, measure.Bound{}},
	{"acquire-zk", "acquire-zk", "lock", measure.P50, measure.AtMost(1.1)},
	{"handover-redislock", "handover-redis", "redislock", measure.Throughput, measure.AtLeast(8)},
	{"handover-redsync", "handover-redis", "redsync", measure.Throughput, measure.AtLeast(60)},
	{"handover-etcd", "handover-etcd", "mutex", measure.Throughput, measure.AtLeast(4)},
	{"handover-zk", "handover-zk", "lock", measure.Throughput, measure.AtLeast(0.95)},
	{"fairness-redis", "handover-redis", "", measure.Fairness, measure.AtLeast(0.95)},
	{"fairness-etcd", "handover-etcd", "", measure.Fairness, measure.AtLeast(0.95)},
	{"fairness-zk", "handover-zk", "", measure.Fairness, measure.AtLeast(0.95)},
}

// Ratios compares what was measured.
func Ratios(r measure.Results) []measure.Ratio {
	var all []measure.Ratio
	for _, c := range comparisons {
		ours, theirs := r[c.in]["ours"], r[c.in][c.theirs]
		var each []float64
		switch {
		case c.theirs != "":
			each = measure.Paired(ours, theirs, c.value)
		default:
			for _, s := range ours {
				each = append(each, c.value(s))
			}
		}
		if len(each) > 0 { // else it was not measured
			all = append(all, measure.NewRatio(c.name, c.bound, each))
		}
	}
	return all
}
