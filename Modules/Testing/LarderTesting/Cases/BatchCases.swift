import Larder

extension CaseList {
  mutating func addBatchCases() {
    add(68, "", "a removal behind sets of the same key wins", in: .batches, checks: .batches) { trial in
      let store = try await trial.open()
      try await store.apply([
        .set("a", SampleValue("1")), .set("b", SampleValue("2")), .set("k", SampleValue("3")), .remove("k"),
      ])
      try await expect("everything", store, holds: [("a", SampleValue("1")), ("b", SampleValue("2"))])
    }
    add(69, "a", "the last of several sets of a key wins", in: .batches, checks: .batches) { trial in
      let store = try await trial.open()
      try await store.apply([.set("k", SampleValue("1")), .set("k", SampleValue("2")), .set("k", SampleValue("3"))])
      try await expect("everything", store, holds: [("k", SampleValue("3"))])
    }
    add(69, "b", "a set behind a removal of the same key wins", in: .batches, checks: .batches) { trial in
      let store = try await trial.open(withKeys: ["k"])
      try await store.apply([.remove("k"), .set("k", SampleValue("new")), .set("n", SampleValue("n")), .remove("n")])
      try await expect("everything", store, holds: [("k", SampleValue("new"))])
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
      70, "e", "a value that holds one that cannot be encoded",
      change: .set("k", SampleValue("outer", children: [.unencodable()])), code: .encodingFailed,
      needs: [.encoding, .immediateRefusal])
    add(
      70, "f", "a value that cannot be encoded is refused even where a later change covers it", in: .batches,
      checks: .batches, needs: [.encoding, .immediateRefusal]
    ) { trial in
      let store = try await trial.open(withKeys: ["k"])
      for later: Change<SampleValue?> in [.remove("k"), .set("k", nil), .removeAll(.all)] {
        try await expect("applying the batch", throws: .encodingFailed, key: "k") {
          try await store.apply([.set("k", .unencodable()), later])
        }
      }
      try await expect("everything", store, holds: [("k", SampleValue(key: "k"))])
    }
    add(72, "", "removing a missing key in a batch is fine", in: .batches, checks: .missing) { trial in
      let store = try await trial.open(withKeys: ["a"])
      try await store.apply([.remove("missing"), .set("b", nil), .remove("missing"), .removeAll("x"..<"y")])
      try await expect("everything", store, holds: [("a", SampleValue(key: "a")), ("b", nil)])
    }
    add(73, "", "an empty batch changes nothing", in: .batches, checks: .batches) { trial in
      let store = try await trial.open(withKeys: ["a"])
      try await store.apply([])
      try await expect("everything", store, holds: [("a", SampleValue(key: "a"))])
    }
    add(202, "", "removing a range and setting keys of it replaces its content", in: .batches, checks: .batches) {
      trial in
      let store = try await trial.open(withKeys: ["a", "user:1", "user:2", "user:3", "z"])
      try await store.apply([
        .removeAll(.prefix("user:")), .set("user:2", SampleValue("new")), .set("user:4", SampleValue("four")),
      ])
      try await expect(
        "everything", store,
        holds: [
          ("a", SampleValue(key: "a")), ("user:2", SampleValue("new")), ("user:4", SampleValue("four")),
          ("z", SampleValue(key: "z")),
        ])
      try await store.apply([.removeAll(.all), .set("only", nil)])
      try await expect("everything after replacing all", store, holds: [("only", nil)])
    }
    add(203, "", "removing a range removes what the batch has set before", in: .batches, checks: .batches) { trial in
      let store = try await trial.open(withKeys: ["a", "m", "z"])
      try await store.apply([
        .set("n", SampleValue("n")), .set("b", SampleValue("b")), .removeAll("m"..<"o"), .set("o", SampleValue("o")),
      ])
      try await expect(
        "everything", store,
        holds: [
          ("a", SampleValue(key: "a")), ("b", SampleValue("b")), ("o", SampleValue("o")), ("z", SampleValue(key: "z")),
        ])
    }
    add(204, "", "random batches leave what doing their changes in turn leaves", in: .batches, checks: .batches) {
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
        try await expect("everything after batch \(round)", store, holds: model.map { ($0.key, $0.value) })
      }
      store = try await trial.settled(store)
      try await expect("everything when settled", store, holds: model.map { ($0.key, $0.value) })
    }
    add(205, "", "a batch of 2,000 changes is one batch", in: .batches, checks: .batches) { trial in
      let keys = (0..<2_000).map { StoreKey(integer: $0) }
      var store = try await trial.open(withKeys: keys)
      try await expect("the count", store.count(), equals: 2_000)
      try await expect("the keys", store.keys(in: .all, limit: .max), equals: keys)
      try await store.apply(ChangeBatch(keys.filter { ($0.integer ?? 0) % 3 != 0 }.map { .remove($0) }))
      store = try await trial.settled(store)
      try await expect(
        "the keys left", store.keys(in: .all, limit: .max), equals: keys.filter { ($0.integer ?? 0) % 3 == 0 })
    }
  }

  /// A batch with a change in any place that cannot be made changes nothing.
  private mutating func addRefusal(
    _ number: Int, _ variant: String, _ what: String, change: Change<SampleValue?>, code: StoreError.Code,
    needs: StoreAbilities = []
  ) {
    add(
      number, variant, "\(what) anywhere in a batch makes it change nothing", in: .batches, checks: .batches,
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
        let error = try await expect("applying it in place \(place)", throws: code, key: change.key) {
          try await store.apply(ChangeBatch(changes))
        }
        try expect("the outcome", error.outcome, equals: .nothingChanged)
        try await expect("everything after it came in place \(place)", store, holds: before)
      }
      store = try await trial.settled(store)
      try await expect("everything when settled", store, holds: before)
    }
  }
}
