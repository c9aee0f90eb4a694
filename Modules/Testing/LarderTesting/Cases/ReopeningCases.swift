import Larder

extension CaseList {
  mutating func addReopeningCases() {
    begin(.reopening, checking: .durability)
    add(
      "115", "a reopened store accepts and refuses the same calls as a fresh one", checks: .lifecycle,
      needs: .persistence
    ) { trial in
      var store = try await trial.open(with: Entries(keys: ["a", "b"]))
      for _ in 0..<2 {
        store = try await trial.reopen(store)
        try await expect(store, refuses: StoreCall.takingInvalidKeys, with: .invalidKey)
        try await expect(store, refuses: StoreCall.senseless, with: .invalidArgument)
        let model = ScanModel(["a", "b"])
        for range: KeyRange in [.all, "b"..<"a", "b"..., ..<"b"] {
          for limit in [0, 1, .max] { try await expect(store, scans: range, limit: limit, like: model) }
        }
        try await expect("the value of a missing key", store.value(forKey: "missing"), equals: nil)
      }
      for call in StoreCall<Store>.all { try await call.run(store) }
      try await store.close()
      try await expect(store, refuses: StoreCall.all, with: .closed)
    }
    add("118a", "all writes are kept when the store is closed and reopened", needs: .persistence) { trial in
      var store = try await trial.open(with: Entries(keys: ["a", "b", "c", "d", "user:1", "user:2"]))
      try await store.setValue("new", forKey: "a")
      try await store.removeValue(forKey: "b")
      try await store.setValue(nil, forKey: "c")
      try await store.update("d") { $0 = "updated" }
      try await store.removeAll(in: .prefix("user:"))
      try await store.apply([.set("e", "e"), .remove("e"), .set("f", "f")])
      store = try await trial.reopen(store)
      try await expect(store, keeps: ["a": "new", "c": nil, "d": "updated", "f": "f"], in: trial)
    }
    add("118b", "writes succeed after each reopening", needs: .persistence) { trial in
      var store = try await trial.open()
      var model: Entries = [:]
      for round in 0..<6 {
        let number = SampleValue(integer: Int64(round))
        let changes: [BatchChange<SampleValue?>] = [
          .set(StoreKey("round:\(round)"), number), .set("latest", number), .remove(StoreKey("round:\(round - 3)")),
        ]
        try await store.apply(ChangeBatch(changes))
        for change in changes { change.apply(to: &model) }
        if round.isMultiple(of: 2) { try await store.synchronize() }
        store = try await trial.reopen(store)
        try await expect(store, holds: model, "after round \(round)")
      }
    }
    add("118c", "a store that was closed empty is empty when it is reopened", needs: .persistence) { trial in
      var store = try await trial.reopen(trial.open())
      try await expect(store, holds: [:], "of a store without writes")
      try await store.apply([.set("a", nil), .set("b", nil)])
      try await store.removeAll()
      store = try await trial.reopen(store)
      try await expect(store, holds: [:], "after removing all entries")
      try await store.setValue(nil, forKey: "c")
      try await expect(trial.reopen(store), holds: ["c": nil], "after writing again")
    }
    add("118d", "a thousand writes of various sizes are kept when the store is reopened", needs: .persistence) {
      trial in
      var generator = trial.makeGenerator()
      let store = try await trial.open()
      var model: Entries = [:]
      for _ in 0..<40 {
        let changes = (0..<25).map { _ -> BatchChange<SampleValue?> in
          let text = String(repeating: "x", count: .random(in: 0..<200, using: &generator))
          return .set(
            StoreKey("k\(Int.random(in: 0..<300, using: &generator))"), SampleValue(text, natural: generator.next()))
        }
        try await store.apply(ChangeBatch(changes))
        for change in changes { change.apply(to: &model) }
      }
      try await expect(trial.reopen(store), holds: model)
    }
    add(
      "118e", "a write that has returned is kept even if the store is not closed",
      needs: [.persistence, .acknowledgedPersistence]
    ) { trial in
      var model: Entries = [:]
      for round in 0..<3 {
        try await writeAndDrop(trial, round: round)
        let written: Entries = [
          "a:\(round)": SampleValue(integer: Int64(round)), "b:\(round)": nil, "u:\(round)": "u", "z:\(round)": nil,
        ]
        model.merge(written) { $1 }
      }
      try await expect(openAgain { try await trial.open() }, holds: model)
    }
    add(
      "118f", "a write that has returned is in the files while the store is still open",
      needs: [.persistence, .acknowledgedPersistence]
    ) { trial in
      // A killed process leaves its files as they are at that moment. It does not close stores or run deinitializers.
      let store = try await trial.open()
      try await store.setValue("set", forKey: "a")
      try await store.apply([.set("b", nil), .set("c", "c"), .remove("c")])
      try await store.update("d") { $0 = "updated" }
      if let copy = try trial.copyOfFiles() {
        try await expect(
          trial.open(at: copy), holds: ["a": "set", "b": nil, "d": "updated"], "of a copy of the files")
      }
      try await expect("the number of entries", store.count(), equals: 3)
    }
    addSharingCases()
  }

  private mutating func addSharingCases() {
    begin(.reopening, checking: .lifecycle)
    let both: Entries = ["a": SampleValue(key: "a"), "b": nil]
    add("126", "a second opening is refused or shares the data", needs: .persistence) { trial in
      let store = try await trial.open(with: Entries(keys: ["a"]))
      switch store.information.sharing {
      case .exclusive:
        try await expect("opening the store a second time", throws: .locked) { try await trial.open() }
        try await store.setValue(nil, forKey: "b")
        try await expect(trial.reopen(store), holds: both, "after closing and reopening")
      case .betweenProcesses, .betweenHosts:
        // Other stores need not see an accepted write before it is written.
        let isAccepted = store.information.durability == .accepted
        if isAccepted { try await store.synchronize() }
        let second = try await trial.open()
        try await expect(second, holds: Entries(keys: ["a"]), "of the second store")
        try await second.setValue(nil, forKey: "b")
        if isAccepted { try await second.synchronize() }
        try await expect(store, holds: both, "of the first store")
        try await store.close()
        try await expect(second, holds: both, "of the second store after the first was closed")
      }
    }
    add(
      "126a",
      "a closed store still refuses writes after another store has opened its data, and does not unlock that data",
      needs: .persistence
    ) { trial in
      let old = try await trial.open(with: Entries(keys: ["a", "b"]))
      let new = try await trial.reopen(old)
      try await expect(old, refuses: StoreCall.changing, with: .closed)
      try await old.close()
      if new.information.sharing == .exclusive {
        try await expect("opening a third store", throws: .locked) { try await trial.open() }
      }
      try await expect(new, holds: Entries(keys: ["a", "b"]))
    }
    add(
      "126b", "a file of the store under another name is refused, or opens as separate data", needs: .persistence
    ) { trial in
      let store = try await trial.open(with: Entries(keys: ["a"]))
      guard store.information.sharing == .exclusive else { return }
      // A store with durability `accepted` would continue to change its files during the check.
      if store.information.durability == .accepted { try await store.synchronize() }
      for kind in ConformanceLocation.LinkKind.allCases {
        for name in try trial.location.topLevelNames() {
          let other = try trial.anotherLocation()
          try other.link(name, to: trial.location, kind)
          do {
            let second = try await trial.open(at: other)
            try await expect(second, holds: [:], "under another name, by a \(kind)")
            try await second.close()
          } catch is StoreError {
            // A refusal is the best result.
          }
          // A store that keeps using the same file may refuse to be reopened while the file has two names.
          try other.remove()
        }
      }
      try await store.setValue(nil, forKey: "b")
      try await expect(trial.settled(store), holds: both, "reopened if persistent")
    }
  }
}

private func writeAndDrop<Store>(_ trial: Trial<Store>, round: Int) async throws {
  let store = try await trial.openUntracked()
  try await store.apply([
    .set("a:\(round)", SampleValue(integer: Int64(round))), .set("b:\(round)", nil), .set("x", nil), .remove("x"),
  ])
  try await store.update("u:\(round)") { $0 = "u" }
  // An update may have to complete the writes before it. No later operation completes this write.
  try await store.setValue(nil, forKey: "z:\(round)")
}
