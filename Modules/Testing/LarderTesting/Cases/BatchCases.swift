import Larder

extension CaseList {
  mutating func addBatchCases() {
    add(68, "", "a removal after sets of the same key wins", in: .batches, checks: .batches) { trial in
      let store = try await trial.open()
      try await store.apply([
        .set("a", SampleValue("1")), .set("b", SampleValue("2")), .set("k", SampleValue("3")), .remove("k"),
      ])
      try await expect("the contents", store, holds: [("a", SampleValue("1")), ("b", SampleValue("2"))])
    }
    add(69, "a", "the last of several sets of a key wins", in: .batches, checks: .batches) { trial in
      let store = try await trial.open()
      try await store.apply([.set("k", SampleValue("1")), .set("k", SampleValue("2")), .set("k", SampleValue("3"))])
      try await expect("the contents", store, holds: [("k", SampleValue("3"))])
    }
    add(69, "b", "a set after a removal of the same key wins", in: .batches, checks: .batches) { trial in
      let store = try await trial.open(withKeys: ["k"])
      try await store.apply([.remove("k"), .set("k", SampleValue("new")), .set("n", SampleValue("n")), .remove("n")])
      try await expect("the contents", store, holds: [("k", SampleValue("new"))])
    }
    addRefusal(70, "a", "an empty key", change: .set("", SampleValue("x")), code: .invalidKey)
    addRefusal(70, "b", "the removal of an empty key", change: .remove(""), code: .invalidKey)
    addRefusal(
      70, "c", "a key that is too long", change: .set(StoreKey(bytes: Array(repeating: 0x61, count: 512)), nil),
      code: .invalidKey)
    addRefusal(
      70, "d", "a value that cannot be encoded", change: .set("k", SampleValue.unencodable()), code: .encodingFailed,
      needs: [.encoding, .immediateRefusal])
    addRefusal(
      70, "e", "a value that contains one that cannot be encoded",
      change: .set("k", SampleValue("outer", children: [.unencodable()])), code: .encodingFailed,
      needs: [.encoding, .immediateRefusal])
    add(
      70, "f", "a value that cannot be encoded is refused even if a later change replaces it", in: .batches,
      checks: .batches, needs: [.encoding, .immediateRefusal]
    ) { trial in
      let store = try await trial.open(withKeys: ["k"])
      for later: Change<SampleValue?> in [.remove("k"), .set("k", nil), .removeAll(.all)] {
        try await expect("applying the batch", throws: .encodingFailed, key: "k") {
          try await store.apply([.set("k", .unencodable()), later])
        }
      }
      try await expect("the contents", store, holds: [("k", SampleValue(key: "k"))])
    }
    add(72, "", "removing a missing key in a batch succeeds", in: .batches, checks: .missing) { trial in
      let store = try await trial.open(withKeys: ["a"])
      try await store.apply([.remove("missing"), .set("b", nil), .remove("missing"), .removeAll("x"..<"y")])
      try await expect("the contents", store, holds: [("a", SampleValue(key: "a")), ("b", nil)])
    }
    add(73, "", "an empty batch changes nothing", in: .batches, checks: .batches) { trial in
      let store = try await trial.open(withKeys: ["a"])
      try await store.apply([])
      try await expect("the contents", store, holds: [("a", SampleValue(key: "a"))])
    }
    add(202, "", "removing a range and then setting its keys replaces its contents", in: .batches, checks: .batches) {
      trial in
      let store = try await trial.open(withKeys: ["a", "user:1", "user:2", "user:3", "z"])
      try await store.apply([
        .removeAll(.prefix("user:")), .set("user:2", SampleValue("new")), .set("user:4", SampleValue("four")),
      ])
      try await expect(
        "the contents", store,
        holds: [
          ("a", SampleValue(key: "a")), ("user:2", SampleValue("new")), ("user:4", SampleValue("four")),
          ("z", SampleValue(key: "z")),
        ])
      try await store.apply([.removeAll(.all), .set("only", nil)])
      try await expect("the contents after replacing all entries", store, holds: [("only", nil)])
    }
    add(203, "", "removing a range removes keys that the batch has set before", in: .batches, checks: .batches) {
      trial in
      let store = try await trial.open(withKeys: ["a", "m", "z"])
      try await store.apply([
        .set("n", SampleValue("n")), .set("b", SampleValue("b")), .removeAll("m"..<"o"), .set("o", SampleValue("o")),
      ])
      try await expect(
        "the contents", store,
        holds: [
          ("a", SampleValue(key: "a")), ("b", SampleValue("b")), ("o", SampleValue("o")), ("z", SampleValue(key: "z")),
        ])
    }
    add(204, "", "random batches have the same effect as their changes in sequence", in: .batches, checks: .batches) {
      trial in
      var generator = trial.makeGenerator()
      var model: [StoreKey: SampleValue?] = [:]
      let keys: [StoreKey] = (0..<12).map { StoreKey("k\($0)") }
      var store = try await trial.open()
      for round in 0..<30 {
        var batch = ChangeBatch<SampleValue?>()
        for step in 0..<Int.random(in: 0...8, using: &generator) {
          let key = keys[Int.random(in: keys.indices, using: &generator)]
          switch Int.random(in: 0..<8, using: &generator) {
          case 0:
            let range = key..<keys[Int.random(in: keys.indices, using: &generator)]
            batch.removeAll(in: range)
            for key in ScanModel(Array(model.keys)).keys(in: range) { model[key] = nil }
          case 1...2:
            batch.removeValue(forKey: key)
            model[key] = nil
          default:
            let value = step == 0 ? nil : SampleValue("\(round).\(step)")
            batch.setValue(value, forKey: key)
            model[key] = .some(value)
          }
        }
        try await store.apply(batch)
        try await expect("the contents after batch \(round)", store, holds: model.map { ($0.key, $0.value) })
      }
      store = try await trial.settled(store)
      try await expect("the contents, reopened if persistent", store, holds: model.map { ($0.key, $0.value) })
    }
    add(205, "", "a batch of 2,000 changes is applied as a whole", in: .batches, checks: .batches) { trial in
      let keys = (0..<2_000).map { StoreKey(integer: $0) }
      var store = try await trial.open(withKeys: keys)
      try await expect("the count", store.count(), equals: 2_000)
      try await expect("the keys", store.keys(in: .all, limit: .max), equals: keys)
      try await store.apply(ChangeBatch(keys.filter { ($0.integer ?? 0) % 3 != 0 }.map { .remove($0) }))
      store = try await trial.settled(store)
      try await expect(
        "the remaining keys", store.keys(in: .all, limit: .max), equals: keys.filter { ($0.integer ?? 0) % 3 == 0 })
    }
  }

  /// Adds a case in which a batch with an invalid change at any position changes nothing.
  private mutating func addRefusal(
    _ number: Int, _ variant: String, _ what: String, change: Change<SampleValue?>, code: StoreError.Code,
    needs: StoreCapabilities = []
  ) {
    add(
      number, variant, "a batch with \(what) at any position changes nothing", in: .batches, checks: .batches,
      needs: needs
    ) { trial in
      var store = try await trial.open(withKeys: ["a", "b", "c"])
      let good: [Change<SampleValue?>] = [
        .set("a", SampleValue("new")), .remove("b"), .removeAll("c"..<"d"), .set("d", nil),
      ]
      let before = ["a", "b", "c"].map { ($0, SampleValue(key: $0)) as (StoreKey, SampleValue?) }
      for place in 0...good.count {
        var changes = good
        changes.insert(change, at: place)
        let error = try await expect(
          "the batch with the invalid change at position \(place)", throws: code, key: change.key
        ) {
          try await store.apply(ChangeBatch(changes))
        }
        try expect("the outcome", error.outcome, equals: .nothingChanged)
        try await expect(
          "the contents after the batch with the invalid change at position \(place)", store, holds: before)
      }
      store = try await trial.settled(store)
      try await expect("the contents, reopened if persistent", store, holds: before)
    }
  }
}

extension CaseList {
  mutating func addClearCases() {
    add(110, "", "all entries can be removed, twice, and set again", in: .clear, checks: .batches) { trial in
      var store = try await trial.open(withKeys: UnusualKeys.all + ScanBounds.keys)
      try await expect("whether a key exists", store.contains("50"), equals: true)
      for _ in 0..<2 {
        try await store.removeAll()
        try await expect("the contents", store, holds: [])
      }
      store = try await trial.settled(store)
      try await expect("the contents, reopened if persistent", store, holds: [])
      try await store.setValue(nil, forKey: "50")
      try await expect("the contents after setting a key again", store, holds: [("50", nil)])
    }
    add(111, "", "removing a range removes exactly its keys, for any bounds", in: .clear, checks: .batches) {
      trial in
      let store = try await trial.open()
      let model = ScanModel(ScanBounds.keys)
      let refill = ChangeBatch<SampleValue?>(ScanBounds.keys.map { .set($0, SampleValue(key: $0)) })
      for range in ScanBounds.ranges {
        var batch = refill
        batch.removeAll(in: range)
        try await store.apply(batch)
        let left = Set(ScanBounds.keys).subtracting(model.keys(in: range)).sorted()
        try await expect("the remaining keys after removing \(range)", store.keys(in: .all, limit: .max), equals: left)
      }
    }
    add(112, "", "removing a prefix keeps neighboring keys", in: .clear, checks: .batches) { trial in
      let keys: [StoreKey] = ["a", "a:", "a:1", "a:2", "a:\u{FFFF}", "a;", "ab", "b:1", "A:1"]
      var store = try await trial.open(withKeys: keys)
      try await store.removeAll(in: .prefix("a:"))
      let left = ScanModel(["a", "a;", "ab", "b:1", "A:1"]).keys(in: .all)
      try await expect("the remaining keys", store.keys(in: .all, limit: .max), equals: left)
      store = try await trial.settled(store)
      try await expect("the remaining keys, reopened if persistent", store.keys(in: .all, limit: .max), equals: left)
    }
    add(
      113, "", "removing a range without entries, or an empty range, changes nothing", in: .clear, checks: .batches
    ) {
      trial in
      let store = try await trial.open(withKeys: ["a", "m", "z"])
      for range: KeyRange in ["b"..<"c", "z"..<"a", "m"..<"m", "zz"..., ..<"a", "b"..<"m"] {
        try await store.removeAll(in: range)
      }
      try await expect("the remaining keys", store.keys(in: .all, limit: .max), equals: ["a", "m", "z"])
    }
    add(
      225, "", "a thousand entries are removed in one step, and neighboring entries are kept", in: .clear,
      checks: .batches
    ) {
      trial in
      let keys = (0..<1_200).map { StoreKey(integer: $0) }
      let store = try await trial.open(withKeys: keys)
      try await store.removeAll(in: keys[100]..<keys[1_100])
      try await expect(
        "the remaining keys", store.keys(in: .all, limit: .max), equals: Array(keys[..<100] + keys[1_100...]))
      try await store.apply(ChangeBatch(keys.map { .set($0, nil) }))
      try await expect("the count after setting all keys again", store.count(), equals: 1_200)
    }
  }
}
