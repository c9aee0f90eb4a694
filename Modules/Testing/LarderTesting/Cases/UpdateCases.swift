import Larder

extension CaseList {
  mutating func addUpdateCases() {
    add(
      206, "", "an update receives the current values in order, and writes the values in its slots", in: .updates,
      checks: .updates
    ) {
      trial in
      var store = try await trial.open(with: [("a", SampleValue("1")), ("b", nil), ("z", SampleValue("z"))])
      let seen = try await store.update(["b", "missing", "a"]) { slots in
        defer { slots = [SampleValue("b"), SampleValue("m"), .some(nil)] }
        return slots
      }
      try expect("the slots", seen, equals: [.some(nil), nil, SampleValue("1")])
      let entries: [(StoreKey, SampleValue?)] = [
        ("a", nil), ("b", SampleValue("b")), ("missing", SampleValue("m")), ("z", SampleValue("z")),
      ]
      try await expect("the contents", store, holds: entries)
      store = try await trial.settled(store)
      try await expect("the contents, reopened if persistent", store, holds: entries)
    }
    add(207, "", "a slot set to nil removes its key", in: .updates, checks: .updates) { trial in
      var store = try await trial.open(withKeys: ["a", "b", "c"])
      try await store.update("a") { $0 = nil }
      try await store.update(["b", "missing"]) { $0 = [nil, nil] }
      try await expect("the contents", store, holds: [("c", SampleValue(key: "c"))])
      store = try await trial.settled(store)
      try await expect("the contents, reopened if persistent", store, holds: [("c", SampleValue(key: "c"))])
    }
    add(208, "", "an error of the body passes through unchanged, and nothing changes", in: .updates, checks: .updates) {
      trial in
      var store = try await trial.open(withKeys: ["a", "b"])
      try await expect("the update", throws: SampleValue.Refusal.decoding) {
        try await store.update(["a", "b", "c"]) { slots in
          slots = [SampleValue("new"), nil, SampleValue("new")]
          throw SampleValue.Refusal.decoding
        }
      }
      let before: [(StoreKey, SampleValue?)] = [("a", SampleValue(key: "a")), ("b", SampleValue(key: "b"))]
      try await expect("the contents", store, holds: before)
      let own = StoreError(.timedOut, during: .update, store: "body", message: "thrown by the body")
      let error = try await expect("an update whose body throws a StoreError", throws: .timedOut) {
        try await store.update("a") { (_: inout SampleValue??) in throw own }
      }
      try expect("the store in the body's error", error.store, equals: "body")
      store = try await trial.settled(store)
      try await expect("the contents, reopened if persistent", store, holds: before)
    }
    add(209, "", "the body runs once, and its result is returned", in: .updates, checks: .updates) { trial in
      let store = try await trial.open(withKeys: ["a"])
      let runs = Tally()
      let result = try await store.update(["a", "b"]) { slots in
        runs.add()
        return "slots: \(slots.count)"
      }
      try expect("the result", result, equals: "slots: 2")
      try expect("the number of runs of the body", runs.count, equals: 1)
      try await expect("the contents", store, holds: [("a", SampleValue(key: "a"))])
    }
    addRefusal(
      210, "a", "a duplicate key", code: .invalidArgument, keys: ["a", "b", "a"], mayRun: false
    ) { slots in
      slots = [nil, nil, nil]
    }
    addRefusal(210, "b", "an invalid key", code: .invalidKey, keys: ["a", ""], mayRun: false) { $0 = [nil, nil] }
    addRefusal(211, "a", "an additional slot", code: .invalidArgument, keys: ["a", "b"], mayRun: true) { slots in
      slots = [nil, nil, nil]
    }
    addRefusal(211, "b", "a missing slot", code: .invalidArgument, keys: ["a", "b"], mayRun: true) { $0 = [nil] }
    addRefusal(
      212, "", "a value that cannot be encoded", code: .encodingFailed, keys: ["a", "b", "c"], mayRun: true,
      needs: [.encoding, .immediateRefusal]
    ) { slots in
      slots = [SampleValue("new"), nil, .some(.unencodable())]
    }
    add(213, "", "an update of no keys runs its body and changes nothing", in: .updates, checks: .updates) { trial in
      let store = try await trial.open(withKeys: ["a"])
      let count = try await store.update([StoreKey]()) { $0.count + 1 }
      try expect("the result", count, equals: 1)
      try await expect("the contents", store, holds: [("a", SampleValue(key: "a"))])
    }
    add(214, "", "no concurrent increment is lost", in: .updates, checks: .updates) { trial in
      let store = try await trial.open()
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<8 {
          group.addTask {
            for _ in 0..<12 {
              try await store.update("counter") { $0 = SampleValue(integer: (($0 ?? nil)?.integer ?? 0) + 1) }
            }
          }
        }
        try await group.waitForAll()
      }
      try await expect(
        "the counter after 96 increments", store.value(forKey: "counter"), equals: SampleValue(integer: 96))
    }
    add(215, "b", "an update is atomic against batches that write its keys", in: .updates, checks: .updates) { trial in
      let store = try await trial.open(with: [("a", SampleValue(integer: 0)), ("b", SampleValue(integer: 0))])
      try await withThrowingTaskGroup(of: Void.self) { group in
        for task in 0..<2 {
          group.addTask {
            // Each batch sets both keys to the same, higher value. So does each update, which must find equal values.
            for step in 1...30 {
              let value = SampleValue(integer: Int64(1_000 * (2 * step + task)))
              try await store.apply([.set("a", value), .set("b", value)])
              await Task.yield()
            }
          }
          group.addTask {
            for _ in 0..<30 {
              let (left, right) = try await store.update(["a", "b"]) { slots in
                let found = (slots[0] ?? nil, slots[1] ?? nil)
                let next = SampleValue(integer: (found.0?.integer ?? 0) + 1)
                slots = [next, next]
                return found
              }
              try expect("the values of the two keys that every write keeps equal", left, equals: right)
              let written = SampleValue(integer: (left?.integer ?? 0) + 1)
              let now = try await store.values(forKeys: ["a", "b"])
              try expect("the values of the two keys after the update to \(written)", now[0], equals: now[1])
            }
          }
        }
        try await group.waitForAll()
      }
      let values = try await store.values(forKeys: ["a", "b"])
      try expect("the values of the two keys at the end", values[0], equals: values[1])
      try expect("whether the two keys exist", (values[0] ?? nil) != nil, equals: true)
    }
    add(215, "c", "an update never replaces a newer value with an old one", in: .updates, checks: .updates) { trial in
      let store = try await trial.open(withKeys: ["k"])
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          for step in 1...60 {
            let value = SampleValue(integer: Int64(step))
            try await store.setValue(value, forKey: "k")
            // No other task writes another number. An update only marks the current one.
            let found = (try await store.value(forKey: "k") ?? nil)?.integer
            try expect("the last number that was set", found, equals: Int64(step))
          }
        }
        group.addTask {
          for step in 0..<60 {
            try await store.update("k") { value in
              if var marked = value ?? nil {
                marked.text = "marked \(step)"
                value = marked
              }
            }
          }
        }
        try await group.waitForAll()
      }
    }
    add(
      215, "a", "an update of several keys is atomic against other updates and batches", in: .updates,
      checks: .updates
    ) {
      trial in
      let keys: [StoreKey] = ["a", "b", "c", "d"]
      let store = try await trial.open(with: keys.map { ($0, SampleValue(integer: 100)) })
      try await withThrowingTaskGroup(of: Void.self) { group in
        for start in 0..<4 {
          group.addTask {
            for step in 1...12 {
              let pair = [keys[start], keys[(start + step % 3 + 1) % 4]]
              try await store.update(pair) { slots in
                let (from, to) = ((slots[0] ?? nil)?.integer ?? 0, (slots[1] ?? nil)?.integer ?? 0)
                slots = [SampleValue(integer: from - 1), SampleValue(integer: to + 1)]
              }
              try await store.setValue(SampleValue(integer: 0), forKey: "other:\(start)")
            }
          }
        }
        group.addTask {
          for _ in 0..<40 {
            let total = try await store.values(forKeys: keys).reduce(0) { $0 + (($1 ?? nil)?.integer ?? 0) }
            try expect("the total while transfers run", total, equals: 400)
            await Task.yield()
          }
        }
        try await group.waitForAll()
      }
      let values = try await store.values(forKeys: keys).map { ($0 ?? nil)?.integer ?? 0 }
      try expect("the total at the end", values.reduce(0, +), equals: 400)
      try await expect("the count", store.count(), equals: 8)
    }
  }

  private mutating func addRefusal(
    _ number: Int, _ variant: String, _ what: String, code: StoreError.Code, keys: [StoreKey], mayRun: Bool,
    needs: StoreCapabilities = [], body: @escaping @Sendable (inout [SampleValue??]) -> Void
  ) {
    add(
      number, variant, "an update with \(what) changes nothing", in: .updates, checks: .updates, needs: needs
    ) { trial in
      let store = try await trial.open(withKeys: ["a", "b"])
      let runs = Tally()
      let error = try await expect("the update", throws: code) {
        try await store.update(keys) { slots in
          runs.add()
          body(&slots)
        }
      }
      try expect("the outcome", error.outcome, equals: .nothingChanged)
      try expect("the number of runs of the body", runs.count, equals: mayRun ? 1 : 0)
      try await expect(
        "the contents", store, holds: [("a", SampleValue(key: "a")), ("b", SampleValue(key: "b"))])
    }
  }
}
