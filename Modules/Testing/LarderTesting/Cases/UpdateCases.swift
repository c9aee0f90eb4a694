import Larder

extension CaseList {
  mutating func addUpdateCases() {
    begin(.updates, checking: .updates)
    add("206", "an update receives the current values in order, and writes the values in its slots") { trial in
      let store = try await trial.open(with: ["a": "1", "b": nil, "z": "z"])
      let seen = try await store.update(["b", "missing", "a"]) { slots in
        defer { slots.assign(["b", "m", .some(nil)]) }
        return Array(slots)
      }
      try expect("the slots", seen, equals: [.some(nil), nil, "1"])
      try await expect(store, keeps: ["a": nil, "b": "b", "missing": "m", "z": "z"], in: trial)
    }
    add("207", "a slot set to nil removes its key", keys: ["a", "b", "c"]) { store, trial in
      try await store.update("a") { $0 = nil }
      try await store.update(["b", "missing"]) { $0.assign([nil, nil]) }
      try await expect(store, keeps: Entries(keys: ["c"]), in: trial)
    }
    add("208", "an error of the body passes through unchanged, and nothing changes", keys: ["a", "b"]) { store, trial in
      try await expect(
        "the update", throws: "the error of the body", where: { ($0 as? SampleValue.Refusal) == .decoding ? $0 : nil }
      ) {
        try await store.update(["a", "b", "c"]) { slots in
          slots.assign(["new", nil, "new"])
          throw SampleValue.Refusal.decoding
        }
      }
      try await expect(store, holds: Entries(keys: ["a", "b"]))
      let own = StoreError(.timedOut, during: .update, store: "body", message: "thrown by the body")
      let error = try await expect("an update whose body throws a StoreError", throws: .timedOut) {
        try await store.update("a") { (_: inout SampleValue??) in throw own }
      }
      try expect("the store in the body's error", error.store, equals: "body")
      try await expect(trial.settled(store), holds: Entries(keys: ["a", "b"]), "reopened if persistent")
    }
    add("209", "the body runs once, and its result is returned", keys: ["a"]) { store, _ in
      let runs = Tally()
      let result = try await store.update(["a", "b"]) { slots in
        runs.add()
        return "slots: \(slots.count)"
      }
      try expect("the result", result, equals: "slots: 2")
      try expect("the number of runs of the body", runs.count, equals: 1)
      try await expect(store, holds: Entries(keys: ["a"]))
    }
    addRefusal("210a", "a duplicate key", .invalidArgument, keys: ["a", "b", "a"], mayRun: false) { _ in }
    addRefusal("210b", "an invalid key", .invalidKey, keys: ["a", ""], mayRun: false) { $0.assign([nil, nil]) }
    add("211a", "a decision to discard changes nothing, and its result is returned", keys: ["a", "b"]) { store, trial in
      let result = try await store.update(deciding: ["a", "b", "c"]) { slots in
        slots.assign(["new", nil, "new"])
        return .discard(slots.count)
      }
      try expect("the result", result, equals: 3)
      let single = try await store.update(deciding: "a") { slot in
        slot = nil
        return .discard("discarded")
      }
      try expect("the result of one key", single, equals: "discarded")
      try await expect(store, holds: Entries(keys: ["a", "b"]))
      try await expect(trial.settled(store), holds: Entries(keys: ["a", "b"]), "reopened if persistent")
    }
    add("211b", "a decision to commit writes what was assigned, and nothing else", keys: ["a", "b", "c"]) {
      store, trial in
      let assigned = try await store.update(deciding: ["a", "missing", "b", "c"]) { slots in
        slots[2] = "new"
        slots[3] = nil
        return .commit(slots.assignedIndices)
      }
      try expect("the assigned slots", assigned, equals: [2, 3])
      let expected: Entries = Entries(keys: ["a"]).merging(["b": "new"]) { $1 }
      try await expect(store, keeps: expected, in: trial)
    }
    add("211c", "an update that assigns nothing changes nothing", keys: ["a", "b"]) { store, trial in
      let seen = try await store.update(["a", "missing"]) { slots in slots.map { $0 != nil } }
      try expect("the keys that exist", seen, equals: [true, false])
      try await expect(store, keeps: Entries(keys: ["a", "b"]), in: trial)
    }
    addRefusal("212", "a value that cannot be encoded", .encodingFailed, keys: ["a", "b", "c"]) { slots in
      slots.assign(["new", nil, .some(.unencodable())])
    }
    add("213", "an update of no keys runs its body and changes nothing", keys: ["a"]) { store, _ in
      let count = try await store.update([StoreKey]()) { $0.count + 1 }
      try expect("the result", count, equals: 1)
      try await expect(store, holds: Entries(keys: ["a"]))
    }
    add("214", "no concurrent increment is lost", keys: []) { store, _ in
      try await concurrently(8) { _ in
        for _ in 0..<12 { try await store.update("counter") { $0 = SampleValue(integer: $0.integer + 1) } }
      }
      try await expect(
        "the counter after 96 increments", store.value(forKey: "counter"), equals: SampleValue(integer: 96))
    }
    add("215a", "an update of several keys is atomic against other updates and batches") { trial in
      let keys: [StoreKey] = ["a", "b", "c", "d"]
      let store = try await trial.open(with: Entries(keys.map { ($0, SampleValue(integer: 100)) }) { $1 })
      @Sendable func total() async throws -> Int64 {
        try await store.values(forKeys: keys).reduce(0) { $0 + $1.integer }
      }
      try await run {
        try await concurrently(4) { start in
          for step in 1...12 {
            try await store.update([keys[start], keys[(start + step % 3 + 1) % 4]]) { slots in
              slots[0] = SampleValue(integer: slots[0].integer - 1)
              slots[1] = SampleValue(integer: slots[1].integer + 1)
            }
            try await store.setValue(SampleValue(integer: 0), forKey: StoreKey("other:\(start)"))
          }
        }
      } besideReaders: { _ in
        try await expect("the total while transfers run", total(), equals: 400)
      }
      try await expect("the total at the end", total(), equals: 400)
      try await expect("the count", store.count(), equals: 8)
    }
    add("215b", "an update is atomic against batches that write its keys") { trial in
      let store = try await trial.open(with: ["a": SampleValue(integer: 0), "b": SampleValue(integer: 0)])
      try await concurrently(4) { task in
        for step in 1...30 {
          // Each batch sets both keys to the same, higher value. So does each update, which must find equal values.
          guard task.isMultiple(of: 2) else {
            let value = SampleValue(integer: Int64(1_000 * (2 * step + task)))
            try await store.apply([.set("a", value), .set("b", value)])
            await Task.yield()
            continue
          }
          let found = try await store.update(["a", "b"]) { slots in
            let next = SampleValue(integer: slots[0].integer + 1)
            defer { slots.assign([.some(next), .some(next)]) }
            return Array(slots)
          }
          try expect("the values of the two keys that every write keeps equal", found[0], equals: found[1])
          let now = try await store.values(forKeys: ["a", "b"])
          try expect("the values of the two keys after an update", now[0], equals: now[1])
        }
      }
      let values = try await store.values(forKeys: ["a", "b"])
      try expect("the values of the two keys at the end", values[0], equals: values[1])
      try expect("whether the two keys exist", (values[0] ?? nil) != nil, equals: true)
    }
    add("215c", "an update never replaces a newer value with an old one", keys: ["k"]) { store, _ in
      try await concurrently(2) { task in
        for step in 1...60 {
          guard task == 0 else {
            try await store.update("k") { value in
              if var marked = value ?? nil {
                marked.text = "marked \(step)"
                value = marked
              }
            }
            continue
          }
          try await store.setValue(SampleValue(integer: Int64(step)), forKey: "k")
          // No other task writes another number. An update only marks the current one.
          try await expect("the last number that was set", store.value(forKey: "k").integer, equals: Int64(step))
        }
      }
    }
  }

  /// Adds a case in which an update of the keys "a" and "b", and other keys, is refused.
  private mutating func addRefusal(
    _ id: String, _ what: String, _ code: StoreError.Code, keys: [StoreKey], mayRun: Bool = true,
    body: @escaping @Sendable (inout UpdateSlots<SampleValue?>) -> Void
  ) {
    add(
      id, "an update with \(what) changes nothing", keys: ["a", "b"],
      needs: code == .encodingFailed ? [.encoding, .immediateRefusal] : []
    ) { store, _ in
      let runs = Tally()
      let update = StoreCall<Store>("the update", .update) { store in
        try await store.update(keys) { slots in
          runs.add()
          body(&slots)
        }
      }
      try await expect(store, refuses: [update], with: code)
      try expect("the number of runs of the body", runs.count, equals: mayRun ? 1 : 0)
      try await expect(store, holds: Entries(keys: ["a", "b"]))
    }
  }
}

extension Optional where Wrapped == SampleValue? {
  /// The integer of the value, or 0 if the key is missing or its value is nil.
  fileprivate var integer: Int64 { (self ?? nil)?.integer ?? 0 }
}
