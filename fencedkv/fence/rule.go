package fence

// Admit is the rule: it decides whether offered may write to resource, given
// the highest mark that the resource has admitted so far (the zero Mark if
// none). Every engine and every guard of this project calls it, and none has a
// rule of its own.
//
//	offered, against the highest admitted     outcome
//	Seq 0                                     ErrNoToken
//	lineage or holder too long                ErrBadToken
//	nothing admitted yet                      admitted, becomes the mark
//	another Lineage                           ErrLineage
//	lower Seq                                 ErrStale
//	equal Seq, same Holder                    admitted
//	equal Seq, another Holder                 ErrCollision
//	higher Seq                                admitted, becomes the mark
//
// raise reports whether offered becomes the mark. The guard must then make the
// new mark durable in the same transaction as the write, or neither.
//
// A refusal is a *RejectedError. Admit is a pure function: it may be called
// concurrently and it looks at no clock.
func Admit(resource string, offered Token, highest Mark) (raise bool, err error) {
	reject := func(reason error) (bool, error) {
		return false, &RejectedError{Resource: resource, Offered: offered, Mark: highest, Reason: reason}
	}
	if err := offered.Validate(); err != nil {
		return reject(err)
	}
	switch {
	case highest.IsZero():
		return true, nil
	case offered.Lineage != highest.Lineage:
		return reject(ErrLineage)
	case offered.Seq < highest.Seq:
		return reject(ErrStale)
	case offered.Seq > highest.Seq:
		return true, nil
	case offered.Holder != highest.Holder:
		return reject(ErrCollision)
	}
	return false, nil
}
