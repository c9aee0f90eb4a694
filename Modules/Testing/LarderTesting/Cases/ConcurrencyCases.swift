import Larder

extension CaseList {
  mutating func addConcurrencyCases() {
    begin(.concurrency, checking: .values)
    add(
      "13", "concurrent reads of a key and of a missing key are correct", keys: ["there"], checks: .missing
    ) { store, _ in
      let value = SampleValue(key: "there")
      try await concurrently(20) { index in
        if index.isMultiple(of: 2) {
          try await expect("the value", store.value(forKey: "there"), equals: value)
          try await expect("whether it contains the key", store.contains("there"), equals: true)
        } else {
          try await expect("the missing value", store.value(forKey: "missing"), equals: nil)
          try await expect("the slots", store.values(forKeys: ["missing", "there"]), equals: [nil, value])
        }
      }
    }
    add("14", "values of 4 KiB that are written concurrently are read concurrently", keys: []) { store, _ in
      let entries = (0..<20).map { (StoreKey("k\($0)"), SampleValue(String(repeating: "\($0)-", count: 1_400))) }
      try await concurrently(20) { try await store.setValue(entries[$0].1, forKey: entries[$0].0) }
      try await concurrently(20) { index in
        let (key, value) = entries[index]
        try await expect("the value of \(key)", store.value(forKey: key), equals: value)
      }
      try await expect("the count", store.count(), equals: 20)
    }
    add("15", "each of several concurrent writers reads its own writes", keys: []) { store, trial in
      let keys = (0..<12).map { StoreKey("task \($0)") }
      try await concurrently(keys.count) { task in
        let key = keys[task]
        try await expect("the value before the first write", store.value(forKey: key), equals: nil)
        for step in 0..<4 {
          let value = SampleValue("\(task).\(step)")
          try await store.setValue(value, forKey: key)
          try await expect("the value after it was set", store.value(forKey: key), equals: value)
          try await store.removeValue(forKey: key)
          try await expect("the value after it was removed", store.value(forKey: key), equals: nil)
        }
        try await store.setValue(SampleValue(key: key), forKey: key)
      }
      try await expect(trial.settled(store), holds: Entries(keys: keys))
    }
    add("16", "after concurrent writes of a key, it has one of the values", keys: []) { store, trial in
      let values = (0..<16).map { SampleValue(String(repeating: "\($0)", count: 100), integer: Int64($0)) }
      try await concurrently(values.count) { try await store.setValue(values[$0], forKey: "k") }
      let final = try await store.value(forKey: "k")
      try expect("whether \(text(of: final)) is one of the values", values.contains { $0 == final }, equals: true)
      try await expect("the value, reopened if persistent", trial.settled(store).value(forKey: "k"), equals: final)
    }
    let many = (0..<60).map { StoreKey("k\(100 + $0)") }
    add("80a", "a reader sees all or none of a batch", checks: .batches) { trial in
      @Sendable func entries(_ round: Int) -> [(StoreKey, SampleValue?)] {
        many.reversed().map { ($0, SampleValue(integer: Int64(round))) }
      }
      let store = try await trial.open(with: Dictionary(uniqueKeysWithValues: entries(0)))
      try await run {
        for round in 1...24 {
          // Half of the batches remove all entries first, and half overwrite each key.
          let first: [BatchChange<SampleValue?>] = round.isMultiple(of: 2) ? [.removeAll(.all)] : []
          try await store.apply(ChangeBatch(first + entries(round).map { .set($0, $1) }))
          await Task.yield()
        }
      } besideReaders: { reader in
        let values: [SampleValue??] =
          switch reader {
          case 0: try await store.entries(in: .all, limit: .max, order: .ascending).map(\.value)
          case 1: try await store.entries(in: .all, limit: .max, order: .descending).map(\.value)
          default: try await store.values(forKeys: many)
          }
        try expect("the number of batches that reader \(reader) sees in one read", Set(values).count, equals: 1)
        try expect("the number of values that reader \(reader) sees", values.count, equals: many.count)
        try await expect("the count", store.count(), equals: many.count)
      }
      try await expect(store, holds: Dictionary(uniqueKeysWithValues: entries(24)))
    }
    add("80b", "the keys of a scan are one snapshot", checks: .scans) { trial in
      let sets = [0, 1].map { set in (0..<40).map { StoreKey("k\(100 + 2 * $0 + set)") } }
      let store = try await trial.open(with: Entries(keys: sets[0]))
      try await run {
        for round in 1...24 {
          try await store.apply(ChangeBatch([.removeAll(.all)] + sets[round % 2].map { .set($0, nil) }))
          await Task.yield()
        }
      } besideReaders: { reader in
        let order = ScanOrder.allCases[reader % 2]
        let keys = try await store.keys(in: .all, limit: .max, order: order).sorted()
        try expect("whether all keys are from the same batch, \(order)", sets.contains(keys), equals: true)
      }
    }
    add("239", "every reader sees the effect of a write that has returned", keys: []) { store, _ in
      try await concurrently(4) { task in
        let key = StoreKey("k\(task)")
        for step in 0..<15 {
          let value = SampleValue(integer: Int64(step))
          try await store.setValue(value, forKey: key)
          // Another task reads the entry that this task has written.
          let seen = try await Task { try await store.entries(in: .only(key), limit: 1) }.value
          try expect("the entry in another task", seen, equals: [StoreEntry(key: key, value: .some(value))])
        }
      }
      try await expect("the count", store.count(), equals: 4)
    }
  }
}
