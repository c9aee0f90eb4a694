import Larder

extension CaseList {
  /// Adds the cases in which another process opens the store, or is killed while it writes.
  mutating func addProcessCases() {
    add(
      251, "", "another process is refused or shares the data, and leaves no lock when it is killed",
      in: .reopening, checks: .lifecycle, needs: [.persistence, .otherProcesses]
    ) { trial in
      let store = try await trial.open()
      try await store.setValue(SampleValue("written"), forKey: "parent")
      try await store.synchronize()
      let isExclusive = store.information.sharing == .exclusive
      let child = try trial.startChild(.share)
      try await child.talk {
        if isExclusive {
          try await expect("the report of the other process while the store is open", child.next(), equals: .locked)
          try await store.close()
          try child.take(.isClosed)
        }
        let parents = [StoreKey("parent").description: "written"]
        try await expect(
          "the report of the other process after opening the store", child.next(), equals: .holds(parents))
        try child.take(.look)
        let both = parents.merging([StoreKey("child").description: "written"]) { $1 }
        try await expect("the report of the other process after its write", child.next(), equals: .holds(both))
        let entries = ["child", "parent"].map { ($0, SampleValue("written")) as (StoreKey, SampleValue?) }
        if isExclusive {
          try await expect("opening the store while another process has it open", throws: .locked) {
            try await trial.open()
          }
        } else {
          try await expect("the contents after another process has written", store, holds: entries)
          try await store.close()
        }
      }
      try await expect(
        "the contents after the other process was killed", trial.open(),
        holds: ["child", "parent"].map { ($0, SampleValue("written")) })
    }
    addKill(252, "", "acknowledged writes outlive a process that is killed at any moment") { _, _, generator in
      .after(UInt32.random(in: 0..<20_000, using: &generator))
    }
    addKill(252, "a", "acknowledged writes outlive a process that ends in the middle of a write") {
      round, sizes, generator in
      // The rounds alternate between a position in the first half of a file, which only a store that rewrites the file
      // reaches, and a position beyond the end of a file.
      guard !round.isMultiple(of: 2) else { return .beyond((sizes.max() ?? 0) / 2) }
      return .beyond((sizes.randomElement(using: &generator) ?? 0) + UInt64.random(in: 1..<2_000, using: &generator))
    }
  }

  private mutating func addKill(
    _ number: Int, _ variant: String, _ name: String,
    _ death: @escaping @Sendable (_ round: Int, _ sizes: [UInt64], inout SeededGenerator) -> ChildPlan.Death
  ) {
    add(
      number, variant, name, in: .reopening, checks: .durability, needs: [.persistence, .otherProcesses]
    ) { trial in
      var generator = trial.makeGenerator()
      let seed = generator.next()
      let store = try await trial.open()
      let promisesAll = store.information.durability != .accepted
      var written = 0
      for _ in 0..<30 {
        written += 1
        try await ChildBatch(number: written, seed: seed).write(to: store)
      }
      try await store.close()
      for round in 0..<ConformanceSuite.killsOfProcess {
        let plan = ChildPlan(
          first: written + 1, seed: seed, death: try death(round, trial.location.dataFileSizes(), &generator))
        let reports = try await trial.startChild(.write(plan)).reports()
        var kept = written
        for report in reports {
          switch report {
          case .acknowledged(let number) where promisesAll: kept = number
          case .synchronized(let number): kept = number
          case .failed(let text):
            throw Mismatch(
              subject: "writing in another process", expected: "no error", got: text, place: "\(#fileID):\(#line)")
          case .acknowledged, .locked, .holds: break
          }
        }
        let reopened = try await trial.open()
        let counter = try await reopened.value(forKey: ChildBatch.counter)
        written = Int((counter ?? nil)?.integer ?? 0)
        let last = reports.reduce(kept) { last, report in
          if case .acknowledged(let number) = report { number } else { last }
        }
        try expect(
          "the latest batch after killing process \(round) (\(plan.death))", (kept...last + 1).contains(written),
          expected: kept == last ? "\(kept), or \(kept + 1)" : "\(kept) to \(last + 1)", got: "\(written)")
        try await expect(
          "the contents after killing process \(round) (\(plan.death)) during batch \(written + 1)", reopened,
          holds: ChildBatch.entries(afterBatch: written, seed: seed))
        try await reopened.close()
      }
    }
  }
}
