import Larder

extension CaseList {
  mutating func addConcurrencyCases() {
    add(13, "", "concurrent reads of a key and of a missing key are correct", in: .concurrency, checks: .missing) {
      trial in
      let store = try await trial.open(withKeys: ["there"])
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<10 {
          group.addTask {
            try await expect("the value", store.value(forKey: "there"), equals: SampleValue(key: "there"))
            try await expect("whether it contains the key", store.contains("there"), equals: true)
          }
          group.addTask {
            try await expect("the missing value", store.value(forKey: "missing"), equals: nil)
            try await expect(
              "the slots", store.values(forKeys: ["missing", "there"]), equals: [nil, SampleValue(key: "there")])
          }
        }
        try await group.waitForAll()
      }
    }
    add(
      14, "", "values of 4 KiB that are written concurrently are read concurrently", in: .concurrency, checks: .values
    ) {
      trial in
      let store = try await trial.open()
      let entries = (0..<20).map { (StoreKey("k\($0)"), SampleValue(String(repeating: "\($0)-", count: 1_400))) }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (key, value) in entries {
          group.addTask { try await store.setValue(value, forKey: key) }
        }
        try await group.waitForAll()
        for (key, value) in entries {
          group.addTask { try await expect("the value of \(key)", store.value(forKey: key), equals: value) }
        }
        try await group.waitForAll()
      }
      try await expect("the count", store.count(), equals: 20)
    }
    add(15, "", "each of several concurrent writers reads its own writes", in: .concurrency, checks: .values) { trial in
      let store = try await trial.open()
      try await withThrowingTaskGroup(of: Void.self) { group in
        for task in 0..<12 {
          group.addTask {
            let key = StoreKey("task \(task)")
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
        }
        try await group.waitForAll()
      }
      try await expect(
        "the contents", trial.settled(store),
        holds: (0..<12).map { (StoreKey("task \($0)"), SampleValue(key: StoreKey("task \($0)"))) })
    }
    add(16, "", "after concurrent writes of a key, it has one of the values", in: .concurrency, checks: .values) {
      trial in
      let store = try await trial.open()
      let values = (0..<16).map { SampleValue(String(repeating: "\($0)", count: 100), integer: Int64($0)) }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for value in values {
          group.addTask { try await store.setValue(value, forKey: "k") }
        }
        try await group.waitForAll()
      }
      let final = try await store.value(forKey: "k")
      try expect("whether \(text(of: final)) is one of the values", values.contains { $0 == final }, equals: true)
      try await expect("the value, reopened if persistent", trial.settled(store).value(forKey: "k"), equals: final)
    }
    add(80, "a", "a reader sees all or none of a batch", in: .concurrency, checks: .batches) { trial in
      let keys = (0..<60).map { StoreKey("k\(100 + $0)") }
      let store = try await trial.open(with: keys.map { ($0, SampleValue(integer: 0)) })
      let isDone = Flag()
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          defer { isDone.raise() }
          for round in 1...24 {
            // Half of the batches remove all entries first, and half overwrite each key.
            var batch = ChangeBatch<SampleValue?>(round.isMultiple(of: 2) ? [.removeAll(.all)] : [])
            for key in keys.reversed() { batch.setValue(SampleValue(integer: Int64(round)), forKey: key) }
            try await store.apply(batch)
            await Task.yield()
          }
        }
        for reader in 0..<3 {
          group.addTask {
            repeat {
              let values: [SampleValue??] =
                switch reader {
                case 0: try await store.entries(in: .all, limit: .max, order: .ascending).map(\.value)
                case 1: try await store.entries(in: .all, limit: .max, order: .descending).map(\.value)
                default: try await store.values(forKeys: keys)
                }
              let rounds = Set(values)
              try expect("the number of batches that reader \(reader) sees in one read", rounds.count, equals: 1)
              try expect("the number of values that reader \(reader) sees", values.count, equals: keys.count)
              try await expect("the count", store.count(), equals: keys.count)
              await Task.yield()
            } while !isDone.isRaised
          }
        }
        try await group.waitForAll()
      }
      try await expect("the contents", store, holds: keys.map { ($0, SampleValue(integer: 24)) })
    }
    add(80, "b", "the keys of a scan are one snapshot", in: .concurrency, checks: .scans) { trial in
      let sets = [0, 1].map { set in (0..<40).map { StoreKey("k\(100 + 2 * $0 + set)") } }
      let store = try await trial.open(with: sets[0].map { ($0, SampleValue(integer: 0)) })
      let isDone = Flag()
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          defer { isDone.raise() }
          for round in 1...24 {
            var batch: ChangeBatch<SampleValue?> = [.removeAll(.all)]
            for key in sets[round % 2] { batch.setValue(SampleValue(integer: 0), forKey: key) }
            try await store.apply(batch)
            await Task.yield()
          }
        }
        for order in ScanOrder.allCases {
          group.addTask {
            repeat {
              let keys = try await store.keys(in: .all, limit: .max, order: order).sorted()
              try expect("whether all keys are from the same batch, \(order)", sets.contains(keys), equals: true)
              await Task.yield()
            } while !isDone.isRaised
          }
        }
        try await group.waitForAll()
      }
    }
    add(239, "", "every reader sees the effect of a write that has returned", in: .concurrency, checks: .values) {
      trial in
      let store = try await trial.open()
      try await withThrowingTaskGroup(of: Void.self) { group in
        for task in 0..<4 {
          group.addTask {
            for step in 0..<15 {
              let key = StoreKey("k\(task)")
              let value = SampleValue(integer: Int64(step))
              try await store.setValue(value, forKey: key)
              // Another task reads the entry that this task has written.
              let seen = try await Task { try await store.entries(in: .only(key), limit: 1) }.value
              try expect("the entry in another task", seen, equals: [StoreEntry(key: key, value: .some(value))])
            }
          }
        }
        try await group.waitForAll()
      }
      try await expect("the count", store.count(), equals: 4)
    }
  }
}
