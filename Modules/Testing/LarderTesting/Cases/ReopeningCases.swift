import Larder

extension CaseList {
  mutating func addReopeningCases() {
    add(
      115, "", "a reopened store accepts and refuses the same calls as a fresh one", in: .reopening,
      checks: .lifecycle, needs: .persistence
    ) { trial in
      var store = try await trial.open(withKeys: ["a", "b"])
      for _ in 0..<2 {
        store = try await trial.reopen(store)
        for call in StoreCall<Store>.takingInvalidKeys {
          try await expect("\(call.name) after reopening", throws: .invalidKey) { try await call.run(store) }
        }
        for call in StoreCall<Store>.senseless {
          try await expect("\(call.name) after reopening", throws: .invalidArgument) { try await call.run(store) }
        }
        let model = ScanModel(["a", "b"])
        for range: KeyRange in [.all, "b"..<"a", "b"..., ..<"b"] {
          for limit in [0, 1, .max] { try await expect(store, scans: range, limit: limit, like: model) }
        }
        try await expect("the value of a missing key", store.value(forKey: "missing"), equals: nil)
      }
      for call in StoreCall<Store>.all { try await call.run(store) }
      try await store.close()
      for call in StoreCall<Store>.all {
        try await expect("\(call.name) after reopening and closing", throws: .closed) { try await call.run(store) }
      }
    }
    add(
      118, "a", "all writes are kept when the store is closed and reopened", in: .reopening, checks: .durability,
      needs: .persistence
    ) {
      trial in
      var store = try await trial.open(withKeys: ["a", "b", "c", "d", "user:1", "user:2"])
      try await store.setValue(SampleValue("new"), forKey: "a")
      try await store.removeValue(forKey: "b")
      try await store.setValue(nil, forKey: "c")
      try await store.update("d") { $0 = SampleValue("updated") }
      try await store.removeAll(in: .prefix("user:"))
      try await store.apply([.set("e", SampleValue("e")), .remove("e"), .set("f", SampleValue("f"))])
      store = try await trial.reopen(store)
      let entries: [(StoreKey, SampleValue?)] = [
        ("a", SampleValue("new")), ("c", nil), ("d", SampleValue("updated")), ("f", SampleValue("f")),
      ]
      try await expect("the contents", store, holds: entries)
      store = try await trial.reopen(store)
      try await expect("the contents after reopening twice", store, holds: entries)
    }
    add(118, "b", "writes succeed after each reopening", in: .reopening, checks: .durability, needs: .persistence) {
      trial in
      var store = try await trial.open()
      var model: [StoreKey: SampleValue?] = [:]
      for round in 0..<6 {
        let batch: ChangeBatch<SampleValue?> = [
          .set(StoreKey("round:\(round)"), SampleValue(integer: Int64(round))),
          .set("latest", SampleValue(integer: Int64(round))),
          .remove(StoreKey("round:\(round - 3)")),
        ]
        try await store.apply(batch)
        model[StoreKey("round:\(round)")] = SampleValue(integer: Int64(round))
        model["latest"] = SampleValue(integer: Int64(round))
        model[StoreKey("round:\(round - 3)")] = nil
        if round.isMultiple(of: 2) { try await store.synchronize() }
        store = try await trial.reopen(store)
        try await expect("the contents after round \(round)", store, holds: model.map { ($0.key, $0.value) })
      }
    }
    add(
      118, "c", "a store that was closed empty is empty when it is reopened", in: .reopening, checks: .durability,
      needs: .persistence
    ) {
      trial in
      var store = try await trial.reopen(trial.open())
      try await expect("the contents of a store without writes", store, holds: [])
      try await store.apply([.set("a", nil), .set("b", nil)])
      try await store.removeAll()
      store = try await trial.reopen(store)
      try await expect("the contents after removing all entries", store, holds: [])
      try await store.setValue(nil, forKey: "c")
      store = try await trial.reopen(store)
      try await expect("the contents after writing again", store, holds: [("c", nil)])
    }
    add(
      118, "d", "a thousand writes of various sizes are kept when the store is reopened", in: .reopening,
      checks: .durability,
      needs: .persistence
    ) {
      trial in
      var generator = trial.makeGenerator()
      var store = try await trial.open()
      var model: [StoreKey: SampleValue?] = [:]
      for _ in 0..<40 {
        var batch = ChangeBatch<SampleValue?>()
        for _ in 0..<25 {
          let key = StoreKey("k\(Int.random(in: 0..<300, using: &generator))")
          let value = SampleValue(
            String(repeating: "x", count: .random(in: 0..<200, using: &generator)), natural: generator.next())
          batch.setValue(value, forKey: key)
          model[key] = value
        }
        try await store.apply(batch)
      }
      store = try await trial.reopen(store)
      try await expect("the contents", store, holds: model.map { ($0.key, $0.value) })
    }
    add(
      118, "e", "a write that has returned is kept even if the store is not closed", in: .reopening,
      checks: .durability,
      needs: [.persistence, .acknowledgedPersistence]
    ) { trial in
      for round in 0..<3 {
        try await writeAndDrop(trial, round: round)
      }
      let store = try await openAgain { try await trial.open() }
      try await expect(
        "the contents", store,
        holds: (0..<3).flatMap { round -> [(StoreKey, SampleValue?)] in
          [
            ("a:\(round)", SampleValue(integer: Int64(round))), ("b:\(round)", nil), ("u:\(round)", SampleValue("u")),
            ("z:\(round)", nil),
          ]
        })
    }
    add(
      118, "f", "a write that has returned is in the files while the store is still open", in: .reopening,
      checks: .durability, needs: [.persistence, .acknowledgedPersistence]
    ) { trial in
      // A killed process leaves its files as they are at that moment. It does not close stores or run deinitializers.
      let store = try await trial.open()
      try await store.setValue(SampleValue("set"), forKey: "a")
      try await store.apply([.set("b", nil), .set("c", SampleValue("c")), .remove("c")])
      try await store.update("d") { $0 = SampleValue("updated") }
      if let copy = try await trial.openCopy() {
        try await expect(
          "the contents of a copy of the files", copy,
          holds: [("a", SampleValue("set")), ("b", nil), ("d", SampleValue("updated"))])
      }
      try await expect("the number of entries", store.count(), equals: 3)
    }
    add(
      126, "", "a second opening is refused or shares the data", in: .reopening, checks: .lifecycle,
      needs: .persistence
    ) {
      trial in
      let store = try await trial.open(withKeys: ["a"])
      switch store.information.sharing {
      case .exclusive:
        try await expect("opening the store a second time", throws: .locked) { try await trial.open() }
        try await store.setValue(nil, forKey: "b")
        try await store.close()
        try await expect(
          "the contents after closing and reopening", trial.open(), holds: [("a", SampleValue(key: "a")), ("b", nil)])
      case .betweenProcesses:
        // Other stores need not see an accepted write before it is written.
        let isAccepted = store.information.durability == .accepted
        if isAccepted { try await store.synchronize() }
        let second = try await trial.open()
        try await expect("the contents of the second store", second, holds: [("a", SampleValue(key: "a"))])
        try await second.setValue(nil, forKey: "b")
        if isAccepted { try await second.synchronize() }
        try await expect("the contents of the first store", store, holds: [("a", SampleValue(key: "a")), ("b", nil)])
        try await store.close()
        try await expect(
          "the contents of the second store after the first was closed", second,
          holds: [("a", SampleValue(key: "a")), ("b", nil)])
      }
    }
    add(
      126, "a",
      "a closed store still refuses writes after another store has opened its data, and does not unlock that data",
      in: .reopening, checks: .lifecycle, needs: .persistence
    ) { trial in
      let old = try await trial.open(withKeys: ["a", "b"])
      let new = try await trial.reopen(old)
      for call in StoreCall<Store>.changing {
        try await expect("\(call.name) on the closed store", throws: .closed) { try await call.run(old) }
      }
      try await old.close()
      if new.information.sharing == .exclusive {
        try await expect("opening a third store", throws: .locked) { try await trial.open() }
      }
      try await expect("the contents", new, holds: [("a", SampleValue(key: "a")), ("b", SampleValue(key: "b"))])
    }
    add(
      126, "b", "a file of the store under another name is refused, or opens as separate data", in: .reopening,
      checks: .lifecycle, needs: .persistence
    ) { trial in
      let store = try await trial.open(withKeys: ["a"])
      guard store.information.sharing == .exclusive else { return }
      // A store with durability `accepted` would continue to change its files during the check.
      if store.information.durability == .accepted { try await store.synchronize() }
      for kind in ConformanceLocation.LinkKind.allCases {
        for other in try trial.locationsWithOneLink(kind) {
          do {
            let second = try await trial.open(at: other)
            try await expect("the contents under another name, by a \(kind)", second, holds: [])
            try await second.close()
          } catch is StoreError {
            // A refusal is the best result.
          }
          // A store that keeps using the same file may refuse to be reopened while the file has two names.
          try other.remove()
        }
      }
      try await store.setValue(nil, forKey: "b")
      try await expect(
        "the contents, reopened if persistent", trial.settled(store), holds: [("a", SampleValue(key: "a")), ("b", nil)])
    }
  }
}

private func writeAndDrop<Store>(_ trial: Trial<Store>, round: Int) async throws {
  let store = try await trial.openUntracked()
  try await store.apply([
    .set("a:\(round)", SampleValue(integer: Int64(round))), .set("b:\(round)", nil), .set("x", nil), .remove("x"),
  ])
  try await store.update("u:\(round)") { $0 = SampleValue("u") }
  // An update may have to complete the writes before it. No later operation completes this write.
  try await store.setValue(nil, forKey: "z:\(round)")
}
