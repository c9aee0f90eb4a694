import Larder

extension CaseList {
  mutating func addClearCases() {
    add(110, "", "everything can be removed, twice, and set anew", in: .clear, checks: .batches) { trial in
      var store = try await trial.open(withKeys: UnusualKeys.all + ScanBounds.keys)
      try await expect("whether something is there", store.contains("50"), equals: true)
      for _ in 0..<2 {
        try await store.removeAll()
        try await expect("everything", store, holds: [])
      }
      store = try await trial.settled(store)
      try await expect("everything when settled", store, holds: [])
      try await store.setValue(nil, forKey: "50")
      try await expect("everything when set anew", store, holds: [("50", nil)])
    }
    add(111, "", "removing a range of any bounds removes just what it contains", in: .clear, checks: .batches) {
      trial in
      let store = try await trial.open()
      let model = ScanModel(ScanBounds.keys)
      let refill = ChangeBatch<SampleValue?>(ScanBounds.keys.map { .set($0, SampleValue(key: $0)) })
      for range in ScanBounds.ranges {
        var batch = refill
        batch.removeAll(in: range)
        try await store.apply(batch)
        let left = Set(ScanBounds.keys).subtracting(model.keys(in: range)).sorted()
        try await expect("the keys left after removing \(range)", store.keys(in: .all, limit: .max), equals: left)
      }
    }
    add(112, "", "removing a prefix leaves its neighbours", in: .clear, checks: .batches) { trial in
      let keys: [StoreKey] = ["a", "a:", "a:1", "a:2", "a:\u{FFFF}", "a;", "ab", "b:1", "A:1"]
      var store = try await trial.open(withKeys: keys)
      try await store.removeAll(in: .prefix("a:"))
      let left = ScanModel(["a", "a;", "ab", "b:1", "A:1"]).keys(in: .all)
      try await expect("the keys left", store.keys(in: .all, limit: .max), equals: left)
      store = try await trial.settled(store)
      try await expect("the keys left when settled", store.keys(in: .all, limit: .max), equals: left)
    }
    add(
      113, "", "a range without keys, or with none at all in the store, removes nothing", in: .clear, checks: .batches
    ) {
      trial in
      let store = try await trial.open(withKeys: ["a", "m", "z"])
      for range: KeyRange in ["b"..<"c", "z"..<"a", "m"..<"m", "zz"..., ..<"a", "b"..<"m"] {
        try await store.removeAll(in: range)
      }
      try await expect("the keys left", store.keys(in: .all, limit: .max), equals: ["a", "m", "z"])
    }
    add(225, "", "a thousand entries are removed at once, and their neighbours stay", in: .clear, checks: .batches) {
      trial in
      let keys = (0..<1_200).map { StoreKey(integer: $0) }
      let store = try await trial.open(withKeys: keys)
      try await store.removeAll(in: keys[100]..<keys[1_100])
      try await expect(
        "the keys left", store.keys(in: .all, limit: .max), equals: Array(keys[..<100] + keys[1_100...]))
      try await store.apply(ChangeBatch(keys.map { .set($0, nil) }))
      try await expect("the count after setting all anew", store.count(), equals: 1_200)
    }
  }
}
