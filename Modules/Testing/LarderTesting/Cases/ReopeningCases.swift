import Larder

extension CaseList {
  mutating func addReopeningCases() {
    add(
      115, "", "a store that was opened again does and refuses what one does that was never closed", in: .reopening,
      checks: .lifecycle, needs: .persistence
    ) { trial in
      var store = try await trial.open(withKeys: ["a", "b"])
      for _ in 0..<2 {
        store = try await trial.reopen(store)
        for call in StoreCall<Store>.takingInvalidKeys {
          try await expect("\(call.name), opened again", throws: .invalidKey) { try await call.run(store) }
        }
        for call in StoreCall<Store>.senseless {
          try await expect("\(call.name), opened again", throws: .invalidArgument) { try await call.run(store) }
        }
        let model = ScanModel(["a", "b"])
        for range: KeyRange in [.all, "b"..<"a", "b"..., ..<"b"] {
          for limit in [0, 1, .max] { try await expect(store, scans: range, limit: limit, like: model) }
        }
        try await expect("the missing value", store.value(forKey: "missing"), equals: nil)
      }
      for call in StoreCall<Store>.all { try await call.run(store) }
      try await store.close()
      for call in StoreCall<Store>.all {
        try await expect("\(call.name), opened again and closed", throws: .closed) { try await call.run(store) }
      }
    }
    add(
      118, "a", "everything written is there after closing and opening", in: .reopening, checks: .durability,
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
      try await expect("everything", store, holds: entries)
      store = try await trial.reopen(store)
      try await expect("everything, opened once more", store, holds: entries)
    }
    add(118, "b", "writing goes on after each opening", in: .reopening, checks: .durability, needs: .persistence) {
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
        try await expect("everything after round \(round)", store, holds: model.map { ($0.key, $0.value) })
      }
    }
    add(118, "c", "a store closed empty is opened empty", in: .reopening, checks: .durability, needs: .persistence) {
      trial in
      var store = try await trial.reopen(trial.open())
      try await expect("everything in a store never written", store, holds: [])
      try await store.apply([.set("a", nil), .set("b", nil)])
      try await store.removeAll()
      store = try await trial.reopen(store)
      try await expect("everything after removing all", store, holds: [])
      try await store.setValue(nil, forKey: "c")
      store = try await trial.reopen(store)
      try await expect("everything after writing again", store, holds: [("c", nil)])
    }
    add(
      118, "d", "a thousand writes, large and small, are there after opening", in: .reopening, checks: .durability,
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
      try await expect("everything", store, holds: model.map { ($0.key, $0.value) })
    }
    add(
      118, "e", "a write that has returned outlives a store that was not closed", in: .reopening, checks: .durability,
      needs: [.persistence, .acknowledgedPersistence]
    ) { trial in
      for round in 0..<3 {
        try await writeAndDrop(trial, round: round)
      }
      let store = try await openAgain { try await trial.open() }
      try await expect(
        "everything", store,
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
      // What a process that is killed leaves is what its files hold at that moment: no closing, no deinitializer.
      let store = try await trial.open()
      try await store.setValue(SampleValue("set"), forKey: "a")
      try await store.apply([.set("b", nil), .set("c", SampleValue("c")), .remove("c")])
      try await store.update("d") { $0 = SampleValue("updated") }
      if let copy = try await trial.openCopy() {
        try await expect(
          "everything in a copy of the files", copy,
          holds: [("a", SampleValue("set")), ("b", nil), ("d", SampleValue("updated"))])
      }
      try await expect("the number of entries", store.count(), equals: 3)
    }
    add(
      126, "", "a second opening is refused, or shares the data", in: .reopening, checks: .lifecycle,
      needs: .persistence
    ) {
      trial in
      let store = try await trial.open(withKeys: ["a"])
      switch store.information.sharing {
      case .exclusive:
        try await expect("opening it a second time", throws: .locked) { try await trial.open() }
        try await store.setValue(nil, forKey: "b")
        try await store.close()
        try await expect(
          "everything after closing and opening", trial.open(), holds: [("a", SampleValue(key: "a")), ("b", nil)])
      case .betweenProcesses:
        // What is only accepted need not be seen by others before it is written.
        let isAccepted = store.information.acknowledgement == .accepted
        if isAccepted { try await store.synchronize() }
        let second = try await trial.open()
        try await expect("everything in the second", second, holds: [("a", SampleValue(key: "a"))])
        try await second.setValue(nil, forKey: "b")
        if isAccepted { try await second.synchronize() }
        try await expect("everything in the first", store, holds: [("a", SampleValue(key: "a")), ("b", nil)])
        try await store.close()
        try await expect(
          "everything in the second when the first was closed", second,
          holds: [("a", SampleValue(key: "a")), ("b", nil)])
      }
    }
    add(
      126, "a", "a closed store goes on refusing when another has opened its data, and does not let go of them",
      in: .reopening, checks: .lifecycle, needs: .persistence
    ) { trial in
      let old = try await trial.open(withKeys: ["a", "b"])
      let new = try await trial.reopen(old)
      for call in StoreCall<Store>.changing {
        try await expect("\(call.name) on the old one", throws: .closed) { try await call.run(old) }
      }
      try await old.close()
      if new.information.sharing == .exclusive {
        try await expect("opening a third one", throws: .locked) { try await trial.open() }
      }
      try await expect("everything", new, holds: [("a", SampleValue(key: "a")), ("b", SampleValue(key: "b"))])
    }
    add(
      126, "b", "a file of the store under another name is refused, or is other data", in: .reopening,
      checks: .lifecycle, needs: .persistence
    ) { trial in
      let store = try await trial.open(withKeys: ["a"])
      guard store.information.sharing == .exclusive else { return }
      // One that only accepts writes would go on changing its files while they are looked at.
      if store.information.acknowledgement == .accepted { try await store.synchronize() }
      for kind in ConformanceLocation.LinkKind.allCases {
        for other in try trial.locationsWithOneLink(kind) {
          do {
            let second = try await trial.open(at: other)
            try await expect("everything under another name, by a \(kind)", second, holds: [])
            try await second.close()
          } catch is StoreError {
            // That is what it should do.
          }
          // A store that goes on with the same file may refuse to be opened again as long as that has two names.
          try other.remove()
        }
      }
      try await store.setValue(nil, forKey: "b")
      try await expect(
        "everything when settled", trial.settled(store), holds: [("a", SampleValue(key: "a")), ("b", nil)])
    }
  }
}

private func writeAndDrop<Store>(_ trial: Trial<Store>, round: Int) async throws {
  let store = try await trial.openUntracked()
  try await store.apply([
    .set("a:\(round)", SampleValue(integer: Int64(round))), .set("b:\(round)", nil), .set("x", nil), .remove("x"),
  ])
  try await store.update("u:\(round)") { $0 = SampleValue("u") }
  // An update may have to finish the writes before it; nothing finishes this one.
  try await store.setValue(nil, forKey: "z:\(round)")
}
