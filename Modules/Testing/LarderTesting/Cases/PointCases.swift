import Larder

extension CaseList {
  mutating func addPointCases() {
    add(1, "", "a missing key reads as nil", in: .points, checks: .missing) { trial in
      let store = try await trial.open(withKeys: ["there"])
      try await expect("a key never set", store.value(forKey: "missing"), equals: nil)
      try await expect("whether it contains a key never set", store.contains("missing"), equals: false)
      try await expect("a key that is there", store.value(forKey: "there"), equals: SampleValue(key: "there"))
    }
    add(2, "", "what was set is read", in: .points, checks: .values) { trial in
      let store = try await trial.open()
      try await store.setValue(SampleValue("a"), forKey: "k")
      try await expect("the value", store.value(forKey: "k"), equals: SampleValue("a"))
      try await expect("the subscript", store["k"], equals: SampleValue("a"))
      try await expect("everything", store, holds: [("k", SampleValue("a"))])
    }
    add(3, "", "setting again replaces the value", in: .points, checks: .values) { trial in
      let store = try await trial.open()
      for text in ["a", "b", "a longer one", ""] {
        try await store.setValue(SampleValue(text), forKey: "k")
        try await expect("after setting \(text.debugDescription)", store, holds: [("k", SampleValue(text))])
      }
    }
    add(4, "", "a removed key is missing", in: .points, checks: .missing) { trial in
      let store = try await trial.open(withKeys: ["a", "k", "z"])
      try await store.removeValue(forKey: "k")
      try await expect("the value", store.value(forKey: "k"), equals: nil)
      try await expect("the slot", store.values(forKeys: ["k"]), equals: [nil])
      try await expect("contains", store.contains("k"), equals: false)
      try await expect(
        "what is left", store, holds: [("a", SampleValue(key: "a")), ("z", SampleValue(key: "z"))])
    }
    add(5, "", "removing a missing key is fine", in: .points, checks: .missing) { trial in
      let store = try await trial.open(withKeys: ["a"])
      try await store.removeValue(forKey: "missing")
      try await expect("what is there", store, holds: [("a", SampleValue(key: "a"))])
    }
    add(6, "", "removing a key twice is fine", in: .points, checks: .missing) { trial in
      let store = try await trial.open(withKeys: ["a", "b"])
      try await store.removeValue(forKey: "b")
      try await store.removeValue(forKey: "b")
      try await expect("what is there", store, holds: [("a", SampleValue(key: "a"))])
      try await store.setValue(SampleValue("again"), forKey: "b")
      try await expect("the key set anew", store.value(forKey: "b"), equals: SampleValue("again"))
    }
    add(8, "", "contains tells what is there", in: .points, checks: .missing) { trial in
      let store = try await trial.open()
      try await expect("before", store.contains("k"), equals: false)
      try await store.setValue(SampleValue("a"), forKey: "k")
      try await expect("after setting", store.contains("k"), equals: true)
      try await expect("the key before it", store.contains("j\u{10FFFF}"), equals: false)
      try await expect("a longer key", store.contains("kk"), equals: false)
      try await store.removeValue(forKey: "k")
      try await expect("after removing", store.contains("k"), equals: false)
    }
    add(9, "", "zero, false and empty are values", in: .points, checks: .values) { trial in
      let store = try await trial.open()
      let empty = SampleValue()
      try await store.setValue(empty, forKey: "k")
      try await expect("everything", store, holds: [("k", empty)])
      try await expect("contains", store.contains("k"), equals: true)
    }
    add(10, "", "a stored nil reads as a stored nil", in: .points, checks: .values) { trial in
      let store = try await trial.open()
      try await store.setValue(nil, forKey: "k")
      try await expect("the value", store.value(forKey: "k"), equals: .some(nil))
      try await store.setValue(SampleValue("a"), forKey: "k")
      try await expect("a value set over it", store.value(forKey: "k"), equals: SampleValue("a"))
      try await store.setValue(nil, forKey: "k")
      try await expect("nil set over a value", store.value(forKey: "k"), equals: .some(nil))
    }
    add(11, "", "a stored nil is not a missing key", in: .points, checks: .values) { trial in
      var store = try await trial.open(with: [("a", nil), ("c", nil)])
      for moment in ["at first", "when settled"] {
        try await expect("contains, \(moment)", store.contains("a"), equals: true)
        try await expect(
          "slots, \(moment)", store.values(forKeys: ["a", "b", "c"]), equals: [.some(nil), nil, .some(nil)])
        try await expect("everything, \(moment)", store, holds: [("a", nil), ("c", nil)])
        let slots = try await store.update(["a", "b"]) { $0 }
        try expect("the slots of an update, \(moment)", slots, equals: [.some(nil), nil])
        try await expect("everything after that update, \(moment)", store, holds: [("a", nil), ("c", nil)])
        store = try await trial.settled(store)
      }
      try await store.removeValue(forKey: "a")
      try await expect("after removing it", store.value(forKey: "a"), equals: nil)
    }
  }
}
