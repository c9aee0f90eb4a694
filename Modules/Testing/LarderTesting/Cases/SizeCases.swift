import Larder

extension CaseList {
  /// Cases of more than most stores ever meet: sizes and numbers beyond those at which code is tempted to cut.
  mutating func addSizeCases() {
    add(
      247, "", "a batch of values of more than 4 MiB each is kept, or refused before anything changes", in: .values,
      checks: .badInput, needs: .persistence
    ) { trial in
      let text = String(repeating: "0123456789abcdef", count: 1 << 18)
      let large: [(StoreKey, SampleValue?)] = ["a", "large"].map { ($0, SampleValue("\(text)\($0)")) }
      var entries: [(StoreKey, SampleValue?)] = ["a", "large"].map { ($0, SampleValue(key: $0)) }
      let store = try await trial.open(with: entries)
      let limit = store.information.maximumValueSize ?? .max
      do {
        try await store.apply(ChangeBatch(large.map { .set($0, $1) }))
        entries = large
      } catch StoreError.Code.valueTooLarge {
        try expect(
          "the maximum size of a value, where one of 4 MiB is too large", limit < 5 << 20, expected: "below 5 MiB",
          got: "\(limit)")
      }
      let settled = try await trial.settled(store)
      try await expect(
        "everything", settled.entries(in: .all, limit: .max), equals: entries.map { StoreEntry(key: $0, value: $1) })
    }
    add(
      249, "", "scans, reads and updates of more entries than round numbers are complete", in: .scans, checks: .scans
    ) { trial in
      // Beyond 999, 1,000, 1,024, 4,096, 8,192 and 10,000. The shortest of values: what counts is their number.
      let keys = (0...10_000).map { StoreKey(integer: $0) }
      let store = try await trial.open(with: keys.map { ($0, nil) })
      try await expect("the count", store.count(), equals: keys.count)
      try await expect("the keys", store.keys(in: .all, limit: .max), equals: keys)
      try await expect(
        "the keys, descending", store.keys(in: .all, limit: .max, order: .descending), equals: keys.reversed())
      try await expect("the keys of all entries", store.entries(in: .all, limit: .max).map(\.key), equals: keys)
      try await expect("the slots", store.values(forKeys: keys), equals: keys.map { _ in .some(nil) })
      try await store.update(keys) { slots in
        slots = slots.enumerated().map { $0.offset == 0 ? .some(nil) : nil }
      }
      try await expect(
        "the keys after an update that removes all but the first", store.keys(in: .all, limit: .max),
        equals: Array(keys.prefix(1)))
    }
  }
}
