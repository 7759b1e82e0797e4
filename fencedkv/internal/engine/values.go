package engine

import "github.com/fencedkv/fencedkv/fencedkv/internal/boltfile"

// Get returns a copy of a value of the last durable state, or ErrNotFound.
func (e *Engine) Get(resource string, key []byte) (value []byte, err error) {
	if value, found := e.sound(resource, key); found {
		return value, nil
	}
	// What is not there, or not right, is worth a second look.
	err = e.View(func(s *Snapshot) (err error) {
		value, err = s.Get(resource, key)
		return err
	})
	return value, err
}

// sound returns a copy of a value, if it is there and sound and nothing fails. It
// allocates the copy and nothing else.
func (e *Engine) sound(resource string, key []byte) (value []byte, found bool) {
	if e.failed.Load() != nil {
		return nil, false
	}
	state, err := e.file.Acquire()
	if err != nil {
		return nil, false
	}
	err = boltfile.Guard(e.path, func() error {
		data, there, err := state.Bucket(dataBucket)
		if err != nil || !there {
			return err
		}
		var buf [128]byte
		record, there, err := data.Get(append(appendPrefix(buf[:0], resource), key...))
		if err != nil || !there {
			return err
		}
		content, err := DecodeValue(resource, key, record)
		if err != nil {
			return err
		}
		value, found = make([]byte, len(content)), true
		copy(value, content)
		return state.Intact()
	})
	if ended := state.Release(); ended != nil || err != nil {
		return nil, false
	}
	return value, found
}

// Get returns a copy of a value, or ErrNotFound.
func (s *Snapshot) Get(resource string, key []byte) (value []byte, err error) {
	err = s.do(inData, func() error {
		at := EncodeKey(resource, key)
		record, err := s.data.Get(at)
		if err != nil {
			return err
		}
		if record == nil {
			// As with a mark, a missing record is believed only if its
			// neighbours are sound.
			if _, err := s.absent(&s.data, at, s.soundValue); err != nil {
				return err
			}
			return ErrNotFound
		}
		content, err := s.decodeValue(resource, key, record)
		if err != nil {
			return err
		}
		value = append([]byte{}, content...)
		return nil
	})
	return value, err
}

func (s *Snapshot) decodeValue(resource string, key, record []byte) ([]byte, error) {
	content, err := DecodeValue(resource, key, record)
	if err != nil {
		return nil, s.damagedValue(resource, key, err.Error())
	}
	return content, nil
}

func (s *Snapshot) soundValue(k, v []byte) error {
	resource, key, err := DecodeKey(k)
	if err != nil {
		return s.misplaced(&s.data, k, "")
	}
	_, err = s.decodeValue(resource, key, v)
	return err
}
