import Larder

extension CaseList {
  mutating func addPointCases() {
    begin(.points, checking: .missing)
    add("1", "a missing key reads as nil", keys: ["there"]) { store, _ in
      try await expect("the value of a key never set", store.value(forKey: "missing"), equals: nil)
      try await expect("whether it contains a key never set", store.contains("missing"), equals: false)
      try await expect("the value of an existing key", store.value(forKey: "there"), equals: SampleValue(key: "there"))
    }
    add("2", "a value that was set can be read", keys: [], checks: .values) { store, _ in
      try await store.setValue("a", forKey: "k")
      try await expect("the value", store.value(forKey: "k"), equals: "a")
      try await expect("the subscript", store["k"], equals: "a")
      try await expect(store, holds: ["k": "a"])
    }
    add("3", "setting a key again replaces its value", keys: [], checks: .values) { store, _ in
      for text in ["a", "b", "a longer one", ""] {
        try await store.setValue(SampleValue(text), forKey: "k")
        try await expect(store, holds: ["k": SampleValue(text)], "after setting \(text.debugDescription)")
      }
    }
    add("4", "a removed key is missing", keys: ["a", "k", "z"]) { store, _ in
      try await store.removeValue(forKey: "k")
      try await expect("the value", store.value(forKey: "k"), equals: nil)
      try await expect("the slot", store.values(forKeys: ["k"]), equals: [nil])
      try await expect("whether it contains the key", store.contains("k"), equals: false)
      try await expect(store, holds: Entries(keys: ["a", "z"]))
    }
    add("5", "removing a missing key succeeds", keys: ["a"]) { store, _ in
      try await store.removeValue(forKey: "missing")
      try await expect(store, holds: Entries(keys: ["a"]))
    }
    add("6", "removing a key twice succeeds", keys: ["a", "b"]) { store, _ in
      try await store.removeValue(forKey: "b")
      try await store.removeValue(forKey: "b")
      try await expect(store, holds: Entries(keys: ["a"]))
      try await store.setValue("again", forKey: "b")
      try await expect("the value after setting the key again", store.value(forKey: "b"), equals: "again")
    }
    add("8", "contains returns whether a key exists", keys: []) { store, _ in
      try await expect("contains before setting the key", store.contains("k"), equals: false)
      try await store.setValue("a", forKey: "k")
      try await expect("contains after setting the key", store.contains("k"), equals: true)
      try await expect("contains with the preceding key", store.contains("j\u{10FFFF}"), equals: false)
      try await expect("contains with a longer key", store.contains("kk"), equals: false)
      try await store.removeValue(forKey: "k")
      try await expect("contains after removing the key", store.contains("k"), equals: false)
    }
    add("9", "a value of zeros, false and empty parts is not missing", keys: [], checks: .values) { store, _ in
      try await store.setValue(SampleValue(), forKey: "k")
      try await expect(store, holds: ["k": SampleValue()])
      try await expect("whether it contains the key", store.contains("k"), equals: true)
    }
    add("10", "a stored nil is read as a stored nil", keys: [], checks: .values) { store, _ in
      for value: SampleValue? in [nil, "a", nil] {
        try await store.setValue(value, forKey: "k")
        try await expect("the value", store.value(forKey: "k"), equals: .some(value))
      }
    }
    add("11", "a stored nil is not a missing key", checks: .values) { trial in
      var store = try await trial.open(with: ["a": nil, "c": nil])
      for moment in ["initially", "reopened if persistent"] {
        try await expect("contains, \(moment)", store.contains("a"), equals: true)
        try await expect(
          "slots, \(moment)", store.values(forKeys: ["a", "b", "c"]), equals: [.some(nil), nil, .some(nil)])
        try await expect(store, holds: ["a": nil, "c": nil], moment)
        let slots = try await store.update(["a", "b"]) { Array($0) }
        try expect("the slots of an update, \(moment)", slots, equals: [.some(nil), nil])
        try await expect(store, holds: ["a": nil, "c": nil], "after that update, \(moment)")
        store = try await trial.settled(store)
      }
      try await store.removeValue(forKey: "a")
      try await expect("the value after removing the key", store.value(forKey: "a"), equals: nil)
    }
  }

  mutating func addMultiGetCases() {
    begin(.multiGet, checking: .values)
    add("58", "there is a slot for each key, in the order of the keys", keys: ["a", "b", "c", "d"]) { store, _ in
      try await expect(
        "slots of d, missing, a, c, absent, b", store.values(forKeys: ["d", "missing", "a", "c", "absent", "b"]),
        equals: [
          SampleValue(key: "d"), nil, SampleValue(key: "a"), SampleValue(key: "c"), nil, SampleValue(key: "b"),
        ])
    }
    add(
      "59", "a read of no keys returns no slots, and a closed store refuses it", keys: ["a"], checks: .lifecycle
    ) { store, _ in
      try await expect("the slots of no keys", store.values(forKeys: []), equals: [])
      try await store.close()
      try await expect("values of no keys on the closed store", throws: .closed) { try await store.values(forKeys: []) }
    }
    add("60", "a repeated key has a slot for each repetition", keys: ["a", "b"]) { store, _ in
      try await expect(
        "slots of b, a, b, x, x", store.values(forKeys: ["b", "a", "b", "x", "x"]),
        equals: [SampleValue(key: "b"), SampleValue(key: "a"), SampleValue(key: "b"), nil, nil])
    }
    add(
      "61", "one invalid key at any position fails the whole call", keys: ["a", "b"], checks: .keys
    ) { store, _ in
      for invalid in StoreKey.invalid {
        for place in 0...2 {
          var keys: [StoreKey] = ["a", "b"]
          keys.insert(invalid, at: place)
          try await expect("values with an invalid key at position \(place)", throws: .invalidKey, key: invalid) {
            try await store.values(forKeys: keys)
          }
        }
      }
    }
    add("63", "one call reads the effect of a batch", keys: ["a", "b", "c"], checks: .batches) { store, _ in
      let keys: [StoreKey] = ["c", "a", "b"]
      try await expect("the slots", store.values(forKeys: keys), equals: keys.map { SampleValue(key: $0) })
      try await store.apply([.remove("a"), .set("b", "new")])
      try await expect("the slots", store.values(forKeys: keys), equals: [SampleValue(key: "c"), nil, "new"])
    }
    let (even, odd) = ((0..<500).map { StoreKey(integer: 2 * $0) }, (0..<500).map { StoreKey(integer: 2 * $0 + 1) })
    add("66", "one call reads a thousand keys", keys: even) { store, trial in
      var generator = trial.makeGenerator()
      let (shuffled, there) = ((even + odd).shuffled(using: &generator), Set(even))
      try await expect(
        "the slots", store.values(forKeys: shuffled),
        equals: shuffled.map { there.contains($0) ? .some(SampleValue(key: $0)) : nil })
    }
  }
}
