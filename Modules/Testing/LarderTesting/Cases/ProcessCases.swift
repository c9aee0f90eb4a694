import Larder

extension CaseList {
  /// Adds the cases where another process opens the store, or is killed while it writes.
  mutating func addProcessCases() {
    begin(.reopening, checking: .durability)
    add(
      "251", "another process is refused or shares the data, and leaves no lock when it is killed",
      checks: .lifecycle, needs: [.persistence, .otherProcesses]
    ) { trial in
      let store = try await trial.open()
      try await store.setValue("written", forKey: "parent")
      try await store.synchronize()
      let isExclusive = store.information.sharing == .exclusive
      let child = try trial.startChild(.share)
      let both: Entries = ["child": "written", "parent": "written"]
      try await child.talk {
        if isExclusive {
          try await expect("the report of the other process while the store is open", child.next(), equals: .locked)
          try await store.close()
          try child.take(.isClosed)
        }
        try await expect(
          "the report of the other process after opening the store", child.next(),
          equals: ChildReport(holding: ["parent": "written"]))
        try child.take(.look)
        try await expect(
          "the report of the other process after its write", child.next(), equals: ChildReport(holding: both))
        if isExclusive {
          try await expect("opening the store while another process has it open", throws: .locked) {
            try await trial.open()
          }
        } else {
          try await expect(store, holds: both, "after another process has written")
          try await store.close()
        }
      }
      try await expect(trial.open(), holds: both, "after the other process was killed")
    }
    addKill("252", "acknowledged writes outlive a process that is killed at any moment") { _, _, generator in
      .after(UInt32.random(in: 0..<20_000, using: &generator))
    }
    addKill("252a", "acknowledged writes outlive a process that ends in the middle of a write") {
      round, sizes, generator in
      // The rounds alternate between a position in the first half of a file, which only a store that rewrites the file
      // reaches, and a position beyond the end of a file.
      guard !round.isMultiple(of: 2) else { return .beyond((sizes.max() ?? 0) / 2) }
      return .beyond((sizes.randomElement(using: &generator) ?? 0) + UInt64.random(in: 1..<2_000, using: &generator))
    }
  }

  private mutating func addKill(
    _ id: String, _ name: String,
    _ death: @escaping @Sendable (_ round: Int, _ sizes: [UInt64], inout SeededGenerator) -> ChildPlan.Death
  ) {
    add(id, name, needs: [.persistence, .otherProcesses]) { trial in
      var generator = trial.makeGenerator()
      let seed = generator.next()
      let store = try await trial.open()
      let promisesAll = store.information.durability != .accepted
      var written = 30
      for number in 1...written { try await ChildBatch(number: number, seed: seed).write(to: store) }
      try await store.close()
      for round in 0..<ConformanceSuite.killsOfProcess {
        let plan = ChildPlan(
          first: written + 1, seed: seed, death: try death(round, trial.location.dataFileSizes(), &generator))
        var (kept, last) = (written, written)
        for report in try await trial.startChild(.write(plan)).reports() {
          switch report {
          case .acknowledged(let number):
            last = number
            if promisesAll { kept = number }
          case .synchronized(let number): kept = number
          case .failed(let text):
            throw Mismatch(subject: "writing in another process", expected: "no error", got: text)
          case .locked, .holds: break
          }
        }
        let reopened = try await trial.open()
        written = Int(try await reopened.value(forKey: ChildBatch.counter)??.integer ?? 0)
        try expect(
          "the latest batch after killing process \(round) (\(plan.death))", (kept...last + 1).contains(written),
          expected: "\(kept) to \(last + 1)", got: "\(written)")
        try await expect(
          reopened, holds: ChildBatch.entries(afterBatch: written, seed: seed),
          "after killing process \(round) (\(plan.death)) during batch \(written + 1)")
        try await reopened.close()
      }
    }
  }
}
