import Larder

extension CaseList {
  /// Cases of stores whose data are in files: opening for reading only, files that are replaced while open,
  /// creation by several at once.
  mutating func addFileCases() {
    addReadOnlyCases()
    addReplacementCases()
    addCreationCase()
  }

  private mutating func addCreationCase() {
    add(
      248, "", "several that create a store at once end with one store, and are told nothing but that it is locked",
      in: .lifecycle, checks: .lifecycle, needs: .persistence
    ) { trial in
      for _ in 0..<4 {
        let location = try trial.anotherLocation()
        let stores = try await withThrowingTaskGroup(of: Store?.self) { group in
          for _ in 0..<4 {
            group.addTask {
              do {
                return try await trial.open(at: location)
              } catch StoreError.Code.locked {
                return nil
              }
            }
          }
          return try await group.reduce(into: [Store]()) { stores, store in
            if let store { stores.append(store) }
          }
        }
        guard let first = stores.first else {
          throw Mismatch(
            subject: "creating a store four times at once", expected: "a store",
            got: "four errors with the code locked",
            place: "\(#fileID):\(#line)")
        }
        let most = first.information.sharing == .exclusive ? 1 : 4
        try expect("how many have it open", stores.count <= most, expected: "at most \(most)", got: "\(stores.count)")
        for (number, store) in stores.enumerated() {
          try await store.setValue(SampleValue("\(number)"), forKey: StoreKey(integer: number))
        }
        for store in stores { try await store.close() }
        try await expect(
          "everything that was written", trial.open(at: location),
          holds: stores.indices.map { (StoreKey(integer: $0), SampleValue("\($0)")) })
      }
    }
  }

  private mutating func addReadOnlyCases() {
    add(
      245, "", "a store opened for reading shows everything, refuses every write and changes no file", in: .reopening,
      checks: .badInput, needs: [.persistence, .readOnlyAccess]
    ) { trial in
      let entries: [(StoreKey, SampleValue?)] = [("a", SampleValue(key: "a")), ("b", nil)]
      try await trial.open(with: entries).close()
      let files = try trial.location.fileStates()
      let store = try await trial.openForReading()
      try expect("the access that it states", store.information.access, equals: .readOnly)
      try await expect("everything", store, holds: entries)
      for call in StoreCall<Store>.writing {
        try await expect("\(call.name) on a store opened for reading", throws: .notPermitted) {
          try await call.run(store)
        }
      }
      try await store.synchronize()
      try await expect("everything after the refused writes", store, holds: entries)
      try await store.close()
      try expect("the files after reading", trial.location.fileStates(), equals: files)
      try await expect("everything, opened for writing again", trial.open(), holds: entries)
    }
    add(
      245, "a", "opening for reading where nothing is says so and makes nothing", in: .reopening, checks: .badInput,
      needs: [.persistence, .readOnlyAccess]
    ) { trial in
      try await expect("opening for reading where nothing is", throws: .notFound) { try await trial.openForReading() }
      try expect("the files that it left", trial.location.fileStates().map(\.name), equals: [])
    }
    add(
      245, "b", "a reader is refused while a store for one owner is open, and shares one for many", in: .reopening,
      checks: .lifecycle, needs: [.persistence, .readOnlyAccess]
    ) { trial in
      let writer = try await trial.open(withKeys: ["a"])
      switch writer.information.sharing {
      case .exclusive:
        try await expect("opening for reading beside a writer", throws: .locked) { try await trial.openForReading() }
        try await writer.close()
        let reader = try await trial.openForReading()
        try await expect("opening for writing beside a reader", throws: .locked) { try await trial.open() }
        let second = try await trial.openForReading()
        try await expect("everything in a second reader", second, holds: [("a", SampleValue(key: "a"))])
        try await reader.close()
        try await second.close()
        try await trial.open().setValue(nil, forKey: "a")
      case .betweenProcesses:
        // One process need not be able to have the same files open in two ways.
        try await writer.close()
        let reader = try await trial.openForReading()
        try await expect("everything", reader, holds: [("a", SampleValue(key: "a"))])
      }
    }
    add(
      245, "c", "a reader sees every write that has returned in the files of a store that was not closed",
      in: .reopening, checks: .durability, needs: [.persistence, .acknowledgedPersistence, .readOnlyAccess]
    ) { trial in
      let store = try await trial.open(withKeys: ["a"])
      try await store.apply([.set("b", nil), .remove("a")])
      try await expect("everything in the store itself", store, holds: [("b", nil)])
      guard let copy = try await trial.openCopy(for: .readOnly) else { return }
      try await expect("everything in a copy of the files", copy, holds: [("b", nil)])
    }
  }

  private mutating func addReplacementCases() {
    add(
      246, "", "a store whose files were moved away does not write into those of the store that took their place",
      in: .lifecycle, checks: .lifecycle, needs: .persistence
    ) { trial in
      let old = try await trial.open(withKeys: ["a"])
      try await expect("everything at first", old, holds: [("a", SampleValue(key: "a"))])
      guard let aside = try trial.moveFilesAside() else { return }
      let new = try await trial.open(withKeys: ["b"])
      try await expectStaleWritesRefused("every file was moved and another store opened", old)
      try await closeDespiteConflict(old)
      try await expect("everything in the store that took the place", new, holds: [("b", SampleValue(key: "b"))])
      try await expect(
        "everything in it when settled", trial.settled(new), holds: [("b", SampleValue(key: "b"))])
      // What had been acknowledged before is where the files are now.
      try await expect(
        "everything in the files that were moved", trial.open(at: aside), holds: [("a", SampleValue(key: "a"))])
    }
    add(
      246, "a", "a write that returns after any one file was moved away is kept, and there is one owner",
      in: .lifecycle, checks: .lifecycle, needs: .persistence
    ) { trial in
      let example = try await trial.open(withKeys: ["a"])
      try await expect("everything at first", example, holds: [("a", SampleValue(key: "a"))])
      for name in try trial.location.fileNames() {
        let location = try trial.anotherLocation()
        let store = try await trial.open(at: location)
        try await store.setValue(SampleValue("before"), forKey: "a")
        guard try location.hide(name) else { continue }
        let second = try await openedUnlessRefused(location, of: trial)
        do {
          try await store.setValue(SampleValue("after"), forKey: "b")
          try await store.synchronize()
          try expect("whether two stores own the files without \(name)", second == nil, expected: "one", got: "two")
          try await store.close()
          try location.unhideUnlessMadeAgain(name)
          try await expect(
            "everything after \(name) was moved away", trial.open(at: location),
            holds: [("a", SampleValue("before")), ("b", SampleValue("after"))])
        } catch let error as StoreError where error.code == .conflict || error.code == .locked {
          try await closeDespiteConflict(store)
          // In the same process it may stand on the same files.
          if let second { try await closeDespiteConflict(second) }
        }
      }
    }
  }
}

/// Opens a second store of the same files, as another process might; `nil` if it is refused.
private func openedUnlessRefused<Store>(_ location: ConformanceLocation, of trial: Trial<Store>) async throws -> Store?
{
  do {
    return try await trial.open(at: location)
  } catch is StoreError {
    return nil
  }
}

/// Throws a ``Mismatch`` unless every write is refused, and synchronizing too where a write was accepted.
private func expectStaleWritesRefused<Store: DataStore>(_ situation: String, _ store: Store) async throws
where Store.Value == SampleValue? {
  for call in StoreCall<Store>.changing {
    do {
      try await call.run(store)
      try await store.synchronize()
    } catch let error as StoreError where error.code == .conflict || error.code == .locked {
      continue
    }
    throw Mismatch(
      subject: "\(call.name) after \(situation)", expected: "a StoreError with the code conflict or locked",
      got: "no error", place: "\(#fileID):\(#line)")
  }
}

/// Closes a store that may say once more that its files are not its own.
private func closeDespiteConflict(_ store: some DataStore) async throws {
  do {
    try await store.close()
  } catch let error as StoreError where error.code == .conflict || error.code == .locked {
    return
  }
}
