import Larder

extension CaseList {
  mutating func addBatchCases() {
    begin(.batches, checking: .batches)
    add("68", "a removal after sets of the same key wins", keys: []) { store, _ in
      try await store.apply([.set("a", "1"), .set("b", "2"), .set("k", "3"), .remove("k")])
      try await expect(store, holds: ["a": "1", "b": "2"])
    }
    add("69a", "the last of several sets of a key wins", keys: []) { store, _ in
      try await store.apply([.set("k", "1"), .set("k", "2"), .set("k", "3")])
      try await expect(store, holds: ["k": "3"])
    }
    add("69b", "a set after a removal of the same key wins", keys: ["k"]) { store, _ in
      try await store.apply([.remove("k"), .set("k", "new"), .set("n", "n"), .remove("n")])
      try await expect(store, holds: ["k": "new"])
    }
    addRefusal("70a", "an empty key", .set("", "x"), code: .invalidKey)
    addRefusal("70b", "the removal of an empty key", .remove(""), code: .invalidKey)
    addRefusal("70c", "a key that is too long", .set(.tooLong, nil), code: .invalidKey)
    addRefusal("70d", "a value that cannot be encoded", .set("k", .unencodable()), code: .encodingFailed)
    addRefusal(
      "70e", "a value that contains one that cannot be encoded",
      .set("k", SampleValue("outer", children: [.unencodable()])), code: .encodingFailed)
    add(
      "70f", "a value that cannot be encoded is refused even if a later change replaces it", keys: ["k"],
      needs: [.encoding, .immediateRefusal]
    ) { store, _ in
      for later: BatchChange<SampleValue?> in [.remove("k"), .set("k", nil), .removeAll(.all)] {
        try await expect("applying the batch", throws: .encodingFailed, key: "k") {
          try await store.apply([.set("k", .unencodable()), later])
        }
      }
      try await expect(store, holds: Entries(keys: ["k"]))
    }
    add("72", "removing a missing key in a batch succeeds", keys: ["a"], checks: .missing) { store, _ in
      try await store.apply([.remove("missing"), .set("b", nil), .remove("missing"), .removeAll("x"..<"y")])
      try await expect(store, holds: ["a": SampleValue(key: "a"), "b": nil])
    }
    add("73", "an empty batch changes nothing", keys: ["a"]) { store, _ in
      try await store.apply([])
      try await expect(store, holds: Entries(keys: ["a"]))
    }
    add(
      "202", "removing a range and then setting its keys replaces its contents",
      keys: ["a", "user:1", "user:2", "user:3", "z"]
    ) { store, _ in
      try await store.apply([.removeAll(.prefix("user:")), .set("user:2", "new"), .set("user:4", "four")])
      try await expect(
        store, holds: Entries(keys: ["a", "z"]).merging(["user:2": "new", "user:4": "four"]) { $1 })
      try await store.apply([.removeAll(.all), .set("only", nil)])
      try await expect(store, holds: ["only": nil], "after replacing all entries")
    }
    add("203", "removing a range removes keys that the batch has set before", keys: ["a", "m", "z"]) { store, _ in
      try await store.apply([.set("n", "n"), .set("b", "b"), .removeAll("m"..<"o"), .set("o", "o")])
      try await expect(store, holds: Entries(keys: ["a", "z"]).merging(["b": "b", "o": "o"]) { $1 })
    }
    add("204", "random batches have the same effect as their changes in sequence", keys: []) { store, trial in
      var generator = trial.makeGenerator()
      var model: Entries = [:]
      let keys: [StoreKey] = (0..<12).map { StoreKey("k\($0)") }
      for round in 0..<30 {
        let changes = (0..<Int.random(in: 0...8, using: &generator)).map { step -> BatchChange<SampleValue?> in
          let key = keys[Int.random(in: keys.indices, using: &generator)]
          switch Int.random(in: 0..<8, using: &generator) {
          case 0: return .removeAll(key..<keys[Int.random(in: keys.indices, using: &generator)])
          case 1...2: return .remove(key)
          default: return .set(key, step == 0 ? nil : SampleValue("\(round).\(step)"))
          }
        }
        for change in changes { change.apply(to: &model) }
        try await store.apply(ChangeBatch(changes))
        try await expect(store, holds: model, "after batch \(round)")
      }
      try await expect(trial.settled(store), holds: model, "reopened if persistent")
    }
    let keys = (0..<2_000).map { StoreKey(integer: $0) }
    add("205", "a batch of 2,000 changes is applied as a whole", keys: keys) { store, trial in
      try await expect("the count", store.count(), equals: 2_000)
      try await expect("the keys", store.keys(in: .all, limit: .max), equals: keys)
      let kept = stride(from: 0, to: keys.count, by: 3).map { keys[$0] }
      try await store.apply(ChangeBatch(keys.indices.filter { $0 % 3 != 0 }.map { .remove(keys[$0]) }))
      try await expect("the remaining keys", trial.settled(store).keys(in: .all, limit: .max), equals: kept)
    }
  }

  /// Adds a case in which a batch with an invalid change at any position changes nothing.
  private mutating func addRefusal(
    _ id: String, _ what: String, _ change: BatchChange<SampleValue?>, code: StoreError.Code
  ) {
    let keys: [StoreKey] = ["a", "b", "c"]
    add(
      id, "a batch with \(what) at any position changes nothing", keys: keys,
      needs: code == .encodingFailed ? [.encoding, .immediateRefusal] : []
    ) { store, trial in
      let good: [BatchChange<SampleValue?>] = [.set("a", "new"), .remove("b"), .removeAll("c"..<"d"), .set("d", nil)]
      for place in 0...good.count {
        var changes = good
        changes.insert(change, at: place)
        let batch = ChangeBatch(changes)
        let call = StoreCall<Store>("apply, invalid change at position \(place)", .apply) { try await $0.apply(batch) }
        try await expect(store, refuses: [call], with: code, key: change.key)
        try await expect(store, holds: Entries(keys: keys), "after \(call.name)")
      }
      try await expect(trial.settled(store), holds: Entries(keys: keys), "reopened if persistent")
    }
  }

  mutating func addClearCases() {
    begin(.clear, checking: .batches)
    add(
      "110", "all entries can be removed, twice, and set again", keys: UnusualKeys.all + ScanBounds.keys
    ) { store, trial in
      try await expect("whether a key exists", store.contains("50"), equals: true)
      try await store.removeAll()
      try await expect(store, holds: [:])
      try await store.removeAll()
      let settled = try await expect(store, keeps: [:], in: trial)
      try await settled.setValue(nil, forKey: "50")
      try await expect(settled, holds: ["50": nil], "after setting a key again")
    }
    add("111", "removing a range removes exactly its keys, for any bounds", keys: []) { store, _ in
      let refill = ScanBounds.keys.map { BatchChange<SampleValue?>.set($0, SampleValue(key: $0)) }
      for range in ScanBounds.ranges {
        try await store.apply(ChangeBatch(refill + [.removeAll(range)]))
        let left = Set(ScanBounds.keys).subtracting(ScanBounds.model.keys(in: range)).sorted()
        try await expect("the remaining keys after removing \(range)", store.keys(in: .all, limit: .max), equals: left)
      }
    }
    add(
      "112", "removing a prefix keeps neighboring keys",
      keys: ["a", "a:", "a:1", "a:2", "a:\u{FFFF}", "a;", "ab", "b:1", "A:1"]
    ) { store, trial in
      try await store.removeAll(in: .prefix("a:"))
      try await expect(store, keeps: Entries(keys: ["a", "a;", "ab", "b:1", "A:1"]), in: trial)
    }
    add(
      "113", "removing a range without entries, or an empty range, changes nothing", keys: ["a", "m", "z"]
    ) { store, _ in
      for range: KeyRange in ["b"..<"c", "z"..<"a", "m"..<"m", "zz"..., ..<"a", "b"..<"m"] {
        try await store.removeAll(in: range)
      }
      try await expect(store, holds: Entries(keys: ["a", "m", "z"]))
    }
    let keys = (0..<1_200).map { StoreKey(integer: $0) }
    add(
      "225", "a thousand entries are removed in one step, and neighboring entries are kept", keys: keys
    ) { store, _ in
      try await store.removeAll(in: keys[100]..<keys[1_100])
      try await expect(
        "the remaining keys", store.keys(in: .all, limit: .max), equals: Array(keys[..<100] + keys[1_100...]))
      try await store.apply(ChangeBatch(keys.map { .set($0, nil) }))
      try await expect("the count after setting all keys again", store.count(), equals: 1_200)
    }
  }
}
