package engine

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
