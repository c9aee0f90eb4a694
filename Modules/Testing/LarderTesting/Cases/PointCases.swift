import Larder

extension CaseList {
  mutating func addPointCases() {
    add(1, "", "a missing key reads as nil", in: .points, checks: .missing) { trial in
      let store = try await trial.open(withKeys: ["there"])
      try await expect("the value of a key never set", store.value(forKey: "missing"), equals: nil)
      try await expect("whether it contains a key never set", store.contains("missing"), equals: false)
      try await expect("the value of an existing key", store.value(forKey: "there"), equals: SampleValue(key: "there"))
    }
    add(2, "", "a value that was set can be read", in: .points, checks: .values) { trial in
      let store = try await trial.open()
      try await store.setValue(SampleValue("a"), forKey: "k")
      try await expect("the value", store.value(forKey: "k"), equals: SampleValue("a"))
      try await expect("the subscript", store["k"], equals: SampleValue("a"))
      try await expect("the contents", store, holds: [("k", SampleValue("a"))])
    }
    add(3, "", "setting a key again replaces its value", in: .points, checks: .values) { trial in
      let store = try await trial.open()
      for text in ["a", "b", "a longer one", ""] {
        try await store.setValue(SampleValue(text), forKey: "k")
        try await expect(
          "the contents after setting \(text.debugDescription)", store, holds: [("k", SampleValue(text))])
      }
    }
    add(4, "", "a removed key is missing", in: .points, checks: .missing) { trial in
      let store = try await trial.open(withKeys: ["a", "k", "z"])
      try await store.removeValue(forKey: "k")
      try await expect("the value", store.value(forKey: "k"), equals: nil)
      try await expect("the slot", store.values(forKeys: ["k"]), equals: [nil])
      try await expect("whether it contains the key", store.contains("k"), equals: false)
      try await expect(
        "the remaining entries", store, holds: [("a", SampleValue(key: "a")), ("z", SampleValue(key: "z"))])
    }
    add(5, "", "removing a missing key succeeds", in: .points, checks: .missing) { trial in
      let store = try await trial.open(withKeys: ["a"])
      try await store.removeValue(forKey: "missing")
      try await expect("the contents", store, holds: [("a", SampleValue(key: "a"))])
    }
    add(6, "", "removing a key twice succeeds", in: .points, checks: .missing) { trial in
      let store = try await trial.open(withKeys: ["a", "b"])
      try await store.removeValue(forKey: "b")
      try await store.removeValue(forKey: "b")
      try await expect("the contents", store, holds: [("a", SampleValue(key: "a"))])
      try await store.setValue(SampleValue("again"), forKey: "b")
      try await expect("the value after setting the key again", store.value(forKey: "b"), equals: SampleValue("again"))
    }
    add(8, "", "contains returns whether a key exists", in: .points, checks: .missing) { trial in
      let store = try await trial.open()
      try await expect("contains before setting the key", store.contains("k"), equals: false)
      try await store.setValue(SampleValue("a"), forKey: "k")
      try await expect("contains after setting the key", store.contains("k"), equals: true)
      try await expect("contains with the preceding key", store.contains("j\u{10FFFF}"), equals: false)
      try await expect("contains with a longer key", store.contains("kk"), equals: false)
      try await store.removeValue(forKey: "k")
      try await expect("contains after removing the key", store.contains("k"), equals: false)
    }
    add(9, "", "a value of zeros, false and empty parts is not missing", in: .points, checks: .values) { trial in
      let store = try await trial.open()
      let empty = SampleValue()
      try await store.setValue(empty, forKey: "k")
      try await expect("the contents", store, holds: [("k", empty)])
      try await expect("whether it contains the key", store.contains("k"), equals: true)
    }
    add(10, "", "a stored nil is read as a stored nil", in: .points, checks: .values) { trial in
      let store = try await trial.open()
      try await store.setValue(nil, forKey: "k")
      try await expect("the value", store.value(forKey: "k"), equals: .some(nil))
      try await store.setValue(SampleValue("a"), forKey: "k")
      try await expect("the value that replaced a nil", store.value(forKey: "k"), equals: SampleValue("a"))
      try await store.setValue(nil, forKey: "k")
      try await expect("the nil that replaced a value", store.value(forKey: "k"), equals: .some(nil))
    }
    add(11, "", "a stored nil is not a missing key", in: .points, checks: .values) { trial in
      var store = try await trial.open(with: [("a", nil), ("c", nil)])
      for moment in ["initially", "reopened if persistent"] {
        try await expect("contains, \(moment)", store.contains("a"), equals: true)
        try await expect(
          "slots, \(moment)", store.values(forKeys: ["a", "b", "c"]), equals: [.some(nil), nil, .some(nil)])
        try await expect("the contents, \(moment)", store, holds: [("a", nil), ("c", nil)])
        let slots = try await store.update(["a", "b"]) { $0 }
        try expect("the slots of an update, \(moment)", slots, equals: [.some(nil), nil])
        try await expect("the contents after that update, \(moment)", store, holds: [("a", nil), ("c", nil)])
        store = try await trial.settled(store)
      }
      try await store.removeValue(forKey: "a")
      try await expect("the value after removing the key", store.value(forKey: "a"), equals: nil)
    }
  }
}

extension CaseList {
  mutating func addMultiGetCases() {
    add(58, "", "there is a slot for each key, in the order of the keys", in: .multiGet, checks: .values) { trial in
      let store = try await trial.open(withKeys: ["a", "b", "c", "d"])
      try await expect(
        "slots of d, missing, a, c, absent, b", store.values(forKeys: ["d", "missing", "a", "c", "absent", "b"]),
        equals: [
          SampleValue(key: "d"), nil, SampleValue(key: "a"), SampleValue(key: "c"), nil, SampleValue(key: "b"),
        ])
    }
    add(59, "", "a read of no keys returns no slots, and a closed store refuses it", in: .multiGet, checks: .lifecycle)
    {
      trial in
      let store = try await trial.open(withKeys: ["a"])
      try await expect("the slots of no keys", store.values(forKeys: []), equals: [])
      try await store.close()
      try await expect("values of no keys on the closed store", throws: .closed) { try await store.values(forKeys: []) }
    }
    add(60, "", "a repeated key has a slot for each repetition", in: .multiGet, checks: .values) { trial in
      let store = try await trial.open(withKeys: ["a", "b"])
      try await expect(
        "slots of b, a, b, x, x", store.values(forKeys: ["b", "a", "b", "x", "x"]),
        equals: [SampleValue(key: "b"), SampleValue(key: "a"), SampleValue(key: "b"), nil, nil])
    }
    add(61, "", "one invalid key at any position fails the whole call", in: .multiGet, checks: .keys) { trial in
      let store = try await trial.open(withKeys: ["a", "b"])
      let tooLong = StoreKey(bytes: Array(repeating: 0x61, count: 512))
      for invalid in ["", tooLong] {
        for place in 0...2 {
          var keys: [StoreKey] = ["a", "b"]
          keys.insert(invalid, at: place)
          try await expect("values with an invalid key at position \(place)", throws: .invalidKey, key: invalid) {
            try await store.values(forKeys: keys)
          }
        }
      }
    }
    add(63, "", "one call reads the effect of a batch", in: .multiGet, checks: .batches) { trial in
      let keys: [StoreKey] = ["c", "a", "b"]
      let store = try await trial.open(withKeys: keys)
      try await expect("the slots", store.values(forKeys: keys), equals: keys.map { SampleValue(key: $0) })
      try await store.apply([.remove("a"), .set("b", SampleValue("new"))])
      try await expect(
        "the slots", store.values(forKeys: keys), equals: [SampleValue(key: "c"), nil, SampleValue("new")])
    }
    add(66, "", "one call reads a thousand keys", in: .multiGet, checks: .values) { trial in
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
