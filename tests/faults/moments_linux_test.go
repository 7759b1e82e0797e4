package faults_test

import (
	"errors"
	"fmt"
	"time"
)

// moment is what the victim is doing when the fault comes.
type moment struct {
	name string

	// lead leads up to the moment.
	lead func(r *run) error

	// begin makes the victim send the request of this moment. Nil where it does of
	// itself, or sends none.
	begin func(r *run) error

	// request is the name of that request. Nil where there is none.
	request func(s *service) string
}

const (
	acquiring = "acquiring"
	waiting   = "waiting"
	holding   = "holding"
	renewing  = "renewing"
	releasing = "releasing"
)

var moments = []moment{
	{acquiring, warmVictim, acquire, func(s *service) string { return s.take }},
	{waiting, queued, releaseHolder, func(s *service) string { return s.turn }},
	{holding, renewed, nil, nil},
	{renewing, granted, nil, func(s *service) string { return s.renew }},
	{releasing, granted, release, func(s *service) string { return s.release }},
}

// warmVictim gives the victim its connection, and its lease or session.
func warmVictim(r *run) error {
	if err := r.victim.order(order{Do: doAcquire, Lock: r.lock + "-first"}); err != nil {
		return err
	}
	e, err := r.victim.await(evAcquired)
	if err != nil {
		return err
	}
	if e.Err != "" {
		return errors.New("the victim's first lock: " + e.Err)
	}
	if err := release(r); err != nil {
		return err
	}
	if _, err := r.victim.await(evReleased); err != nil {
		return err
	}
	_, err = r.victim.await(evEnded)
	r.victim.forget()
	return err
}

func acquire(r *run) error {
	r.asked = time.Now()
	return r.victim.order(order{Do: doAcquire, Lock: r.lock})
}

func release(r *run) error { return r.victim.order(order{Do: doRelease}) }

// granted leads the victim to a lease.
func granted(r *run) error {
	if err := acquire(r); err != nil {
		return err
	}
	e, err := r.acquired()
	if err == nil && e.Err != "" {
		err = errors.New("the victim's acquisition of a free lock: " + e.Err)
	}
	return err
}

// renewed leads it to one that was renewed just now.
func renewed(r *run) error {
	if err := granted(r); err != nil {
		return err
	}
	e, err := r.victim.await(evRenewed, evEnded)
	if err == nil && e.What == evEnded {
		err = errors.New("the victim's lease ended before it was renewed: " + e.Err)
	}
	return err
}

// queued makes the victim wait for the first holder.
func queued(r *run) error {
	if err := warmVictim(r); err != nil {
		return err
	}
	if err := r.hold(); err != nil {
		return err
	}
	if err := acquire(r); err != nil {
		return err
	}
	return r.entries(patience, 2)
}

// releaseHolder gives the victim its turn.
func releaseHolder(r *run) error {
	if r.holder == nil {
		return nil
	}
	err := r.release(r.holder)
	r.holder = nil
	if err != nil {
		return fmt.Errorf("release of the first holder: %w", err)
	}
	return nil
}
