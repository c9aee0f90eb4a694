import Larder

extension CaseList {
  mutating func addDamageCases() {
    addDamage(51, "a", "reading the damaged entry throws and names its key") { store, _ in
      let error = try await expect("its value", throws: .corrupted, key: "damaged") {
        try await store.value(forKey: "damaged")
      }
      try expect("whether the error tells what led to it", error.underlying != nil, equals: true)
    }
    addDamage(51, "b", "reading several keys throws and names the first damaged one") { store, _ in
      try await store.setValue(.undecodable(), forKey: "a:damaged too")
      try await expect("values", throws: .corrupted, key: "damaged") {
        try await store.values(forKeys: ["a", "damaged", "z", "a:damaged too"])
      }
      try await expect(
        "the values of the others", store.values(forKeys: ["a", "z"]),
        equals: [SampleValue(key: "a"), SampleValue(key: "z")])
    }
    addDamage(51, "c", "a scan that meets the damaged entry throws and names its key") { store, _ in
      for order in ScanOrder.allCases {
        try await expect("entries, \(order)", throws: .corrupted, key: "damaged") {
          try await store.entries(in: .all, limit: .max, order: order)
        }
        try await expect("entries one after another, \(order)", throws: .corrupted, key: "damaged") {
          for try await _ in store.entries(order: order) {}
        }
        try await expect("a page, \(order)", throws: .corrupted, key: "damaged") {
          try await store.pages(size: 5, order: order).page()
        }
      }
    }
    addDamage(
      51, "d", "what does not look at values does not mind the damage", needs: .keysWithoutValues
    ) { store, _ in
      try await expect("the keys", store.keys(in: .all, limit: .max), equals: ["a", "damaged", "z"])
      try await expect("contains", store.contains("damaged"), equals: true)
      try await expect("the count", store.count(), equals: 3)
    }
    addDamage(229, "", "every other entry stays readable and writable") { store, trial in
      try await expect("a value before it", store.value(forKey: "a"), equals: SampleValue(key: "a"))
      try await expect(
        "the entries before it", store.entries(in: ..<"damaged", limit: .max),
        equals: [StoreEntry(key: "a", value: .some(SampleValue(key: "a")))])
      try await expect(
        "the entries behind it", store.entries(in: .all, limit: 1, order: .descending),
        equals: [StoreEntry(key: "z", value: .some(SampleValue(key: "z")))])
      try await store.apply([.set("a", SampleValue("new")), .remove("z"), .set("b", nil)])
      try await store.update("b") { $0 = SampleValue("b") }
      let settled = try await trial.settled(store)
      try await expect(
        "the values", settled.values(forKeys: ["a", "b", "z"]), equals: [SampleValue("new"), SampleValue("b"), nil])
      try await expect("the damaged entry", throws: .corrupted, key: "damaged") {
        try await settled.value(forKey: "damaged")
      }
    }
    addDamage(230, "", "the damaged entry is never deleted for it") { store, trial in
      var store = store
      for _ in 0..<2 {
        try await expect("its value", throws: .corrupted, key: "damaged") { try await store.value(forKey: "damaged") }
        try await expect("everything", throws: .corrupted, key: "damaged") {
          try await store.entries(in: .all, limit: .max)
        }
        if !trial.lacking.contains(.keysWithoutValues) {
          try await expect("the keys", store.keys(in: .all, limit: .max), equals: ["a", "damaged", "z"])
        }
        store = try await trial.settled(store)
      }
    }
    addDamage(231, "", "an update that meets the damaged entry throws and changes nothing") { store, trial in
      let runs = Tally()
      try await expect("the update", throws: .corrupted, key: "damaged") {
        try await store.update(["a", "damaged"]) { slots in
          runs.add()
          slots = [nil, nil]
        }
      }
      try expect("how often its body ran", runs.count, equals: 0)
      if !trial.lacking.contains(.keysWithoutValues) {
        try await expect("the keys", store.keys(in: .all, limit: .max), equals: ["a", "damaged", "z"])
      }
      try await expect("the other value", store.value(forKey: "a"), equals: SampleValue(key: "a"))
    }
    addDamage(232, "a", "the damaged entry can be set anew") { store, trial in
      try await store.setValue(SampleValue("repaired"), forKey: "damaged")
      try await expect("its value", store.value(forKey: "damaged"), equals: SampleValue("repaired"))
      let settled = try await trial.settled(store)
      try await expect("the count of entries", settled.entries(in: .all, limit: .max).count, equals: 3)
    }
    addDamage(232, "b", "the damaged entry can be removed, alone or with a range") { store, trial in
      try await store.removeValue(forKey: "damaged")
      try await expect("its value", store.value(forKey: "damaged"), equals: nil)
      try await store.setValue(.undecodable(), forKey: "damaged")
      try await store.removeAll(in: .prefix("d"))
      let settled = try await trial.settled(store)
      try await expect("the keys of entries", settled.entries(in: .all, limit: .max).map(\.key), equals: ["a", "z"])
    }
  }

  /// A case that begins with a store of three entries, the middle one of which cannot be decoded.
  private mutating func addDamage(
    _ number: Int, _ variant: String, _ name: String, needs: StoreAbilities = [],
    _ body: @escaping @Sendable (Store, Trial<Store>) async throws -> Void
  ) {
    add(number, variant, name, in: .damage, checks: .isolation, needs: needs.union(.encoding)) { trial in
      let store = try await trial.open(withKeys: ["a", "z"])
      try await store.setValue(.undecodable(), forKey: "damaged")
      // A store may remember the value itself; opened again, it has to decode.
      try await body(trial.settled(store), trial)
    }
  }
}
