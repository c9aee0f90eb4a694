import Larder

extension CaseList {
  mutating func addMultiGetCases() {
    add(58, "", "there is a slot for each key, in the order asked for", in: .multiGet, checks: .values) { trial in
      let store = try await trial.open(withKeys: ["a", "b", "c", "d"])
      try await expect(
        "slots of d, missing, a, c, absent, b", store.values(forKeys: ["d", "missing", "a", "c", "absent", "b"]),
        equals: [
          SampleValue(key: "d"), nil, SampleValue(key: "a"), SampleValue(key: "c"), nil, SampleValue(key: "b"),
        ])
    }
    add(59, "", "no keys give no slots, and a closed store refuses even that", in: .multiGet, checks: .lifecycle) {
      trial in
      let store = try await trial.open(withKeys: ["a"])
      try await expect("the slots of no keys", store.values(forKeys: []), equals: [])
      try await store.close()
      try await expect("asking for no keys", throws: .closed) { try await store.values(forKeys: []) }
    }
    add(60, "", "a key asked for twice has two slots", in: .multiGet, checks: .values) { trial in
      let store = try await trial.open(withKeys: ["a", "b"])
      try await expect(
        "slots of b, a, b, x, x", store.values(forKeys: ["b", "a", "b", "x", "x"]),
        equals: [SampleValue(key: "b"), SampleValue(key: "a"), SampleValue(key: "b"), nil, nil])
    }
    add(61, "", "one invalid key anywhere fails the whole call", in: .multiGet, checks: .keys) { trial in
      let store = try await trial.open(withKeys: ["a", "b"])
      let tooLong = StoreKey(bytes: Array(repeating: 0x61, count: 512))
      for invalid in ["", tooLong] {
        for place in 0...2 {
          var keys: [StoreKey] = ["a", "b"]
          keys.insert(invalid, at: place)
          try await expect("asking with an invalid key in place \(place)", throws: .invalidKey, key: invalid) {
            try await store.values(forKeys: keys)
          }
        }
      }
    }
    add(63, "", "what a batch has set is read by one call", in: .multiGet, checks: .batches) { trial in
      let keys: [StoreKey] = ["c", "a", "b"]
      let store = try await trial.open(withKeys: keys)
      try await expect("the slots", store.values(forKeys: keys), equals: keys.map { SampleValue(key: $0) })
      try await store.apply([.remove("a"), .set("b", SampleValue("new"))])
      try await expect(
        "the slots", store.values(forKeys: keys), equals: [SampleValue(key: "c"), nil, SampleValue("new")])
    }
    add(66, "", "a thousand keys are read by one call", in: .multiGet, checks: .values) { trial in
      var generator = trial.makeGenerator()
      let keys = (0..<1_000).map { StoreKey(integer: $0) }
      let store = try await trial.open(withKeys: keys.filter { ($0.integer ?? 0).isMultiple(of: 2) })
      let shuffled = keys.shuffled(using: &generator)
      try await expect(
        "the slots", store.values(forKeys: shuffled),
        equals: shuffled.map { ($0.integer ?? 0).isMultiple(of: 2) ? .some(SampleValue(key: $0)) : nil })
    }
  }
}
