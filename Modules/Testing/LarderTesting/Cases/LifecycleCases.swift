import Larder

extension CaseList {
  mutating func addLifecycleCases() {
    addClosingCases()
    add(116, "", "every operation on a closed store is refused", in: .lifecycle, checks: .lifecycle) { trial in
      let store = try await trial.open(withKeys: ["a", "b"])
      try await store.close()
      for call in StoreCall<Store>.all {
        try await expect("\(call.name) after closing", throws: .closed) { try await call.run(store) }
      }
    }
    add(121, "", "closing again does nothing", in: .lifecycle, checks: .lifecycle) { trial in
      let store = try await trial.open(withKeys: ["a"])
      for _ in 0..<3 {
        try await store.close()
      }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<8 { group.addTask { try await store.close() } }
        try await group.waitForAll()
      }
      try await expect("an operation after closing", throws: .closed) { try await store.count() }
    }
    add(226, "", "operations that meet closing complete or are refused", in: .lifecycle, checks: .lifecycle) { trial in
      let store = try await trial.open(withKeys: ["start"])
      let written = try await withThrowingTaskGroup(of: [StoreKey].self) { group in
        for task in 0..<6 {
          group.addTask {
            var written: [StoreKey] = []
            do {
              for step in 0..<200 {
                let key = StoreKey("\(task).\(step)")
                try await store.setValue(SampleValue(key: key), forKey: key)
                written.append(key)
                _ = try await store.value(forKey: "start")
              }
            } catch StoreError.Code.closed {
              return written
            }
            return written
          }
        }
        group.addTask {
          for _ in 0..<20 { await Task.yield() }
          try await store.close()
          return []
        }
        return try await group.reduce(into: []) { $0 += $1 }
      }
      try await expect("a write after closing", throws: .closed) {
        try await store.setValue(SampleValue(key: "refused"), forKey: "refused")
      }
      try await expect("an operation after closing", throws: .closed) { try await store.contains("start") }
      guard !trial.lacking.contains(.persistence) else { return }
      let reopened = try await trial.open()
      let found = try await reopened.values(forKeys: written)
      try expect("what was written before closing", found, equals: written.map { SampleValue(key: $0) })
      // Nothing that was refused may have been written all the same.
      try await expect("how many entries there are", reopened.count(), equals: written.count + 1)
    }
    add(227, "", "synchronizing changes nothing that can be seen", in: .lifecycle, checks: .durability) { trial in
      let store = try await trial.open()
      try await store.synchronize()
      try await store.apply([.set("a", SampleValue(key: "a")), .set("b", nil)])
      try await store.synchronize()
      try await store.synchronize()
      try await expect("everything", store, holds: [("a", SampleValue(key: "a")), ("b", nil)])
      try await store.removeValue(forKey: "b")
      try await expect("everything after writing again", store, holds: [("a", SampleValue(key: "a"))])
    }
    add(228, "", "stores at different locations have nothing in common", in: .lifecycle, checks: .lifecycle) { trial in
      let store = try await trial.open(withKeys: ["a"])
      let other = try await trial.openElsewhere()
      try await expect("everything in the other store", other, holds: [])
      try await other.setValue(SampleValue("other"), forKey: "b")
      try await other.close()
      try await expect("everything in the first store", store, holds: [("a", SampleValue(key: "a"))])
    }
  }
}
