import Foundation
package import Larder
import LarderFiles
package import LarderTesting
import Testing

/// The trials that every store of files goes through on the simulated disk, each printing its seed.
///
/// The environment variable `LARDER_CUTS` says how many power cuts there are at least, and `LARDER_STEPS` how long the
/// short histories are, of which then all are run, with every fault; `make soak` sets both.
package struct DiskTrials<Store: DataStore>: Sendable where Store.Value == Int {
  /// What opens the store on a disk.
  package let trial: DiskTrial<Store>

  private let name: String
  private let cuts: Int
  private let faults: Int
  private let historyLength: Int
  private let historyShare: Double
  private let faultKinds: [SimulatedFault]

  /// Makes the trials of a kind of store.
  ///
  /// - Parameters:
  ///   - name: What failures call the store.
  ///   - cuts: How many power cuts there are, unless the environment says.
  ///   - faults: How many operations fail; half of the cuts where the environment says how many of those there are.
  ///   - historyLength: How many steps the longest of the short histories have, unless the environment says.
  ///   - historyShare: Which share of the longest ones is run, between 0 and 1, unless the environment says.
  ///   - open: Opens the store on a disk.
  package init(
    _ name: String, cuts: Int, faults: Int, historyLength: Int, historyShare: Double,
    open: @escaping @Sendable (SimulatedFileSystem) async throws -> Store
  ) {
    func setting(_ variable: String) -> Int? { ProcessInfo.processInfo.environment[variable].flatMap { Int($0) } }
    let (chosenCuts, chosenLength) = (setting("LARDER_CUTS"), setting("LARDER_STEPS"))
    self.name = name
    self.cuts = chosenCuts ?? cuts
    self.faults = chosenCuts.map { $0 / 2 } ?? faults
    self.historyLength = chosenLength ?? historyLength
    self.historyShare = chosenLength == nil ? historyShare : 1
    var faultKinds: [SimulatedFault] = [.powerLoss, .error(EIO), .shortTransfer]
    if chosenLength != nil { faultKinds += [.error(ENOSPC), .error(EINTR), .error(EMFILE), .errorAfterwards(EIO)] }
    self.faultKinds = faultKinds
    trial = DiskTrial(name, open: open)
  }

  /// Power lost at every operation of random histories.
  package func losePower() async throws {
    let seed = seed(for: "power cuts")
    let start = ContinuousClock.now
    let count = try await trial.losePower(cuts: cuts, seed: seed)
    #expect(count >= cuts)
    print("\(count) power cuts (\(name)) in \(ContinuousClock.now - start)")
  }

  /// Every operation of random histories failing.
  package func fail() async throws {
    let seed = seed(for: "failures")
    let start = ContinuousClock.now
    let count = try await trial.fail(faults: faults, seed: seed, errorNumbers: [EIO, ENOSPC, EINTR, EMFILE])
    #expect(count >= faults)
    print("\(count) failures (\(name)) in \(ContinuousClock.now - start)")
  }

  /// Every fault at every operation of short histories.
  package func runEveryShortHistory() async throws {
    let seed = seed(for: "short histories")
    let start = ContinuousClock.now
    let count = try await trial.runEveryHistory(
      upToLength: historyLength, share: historyShare, faults: faultKinds, seed: seed)
    #expect(count > 0)
    print("\(count) faults in short histories (\(name)) in \(ContinuousClock.now - start)")
  }

  private func seed(for purpose: String) -> UInt64 {
    print("\(SeededGenerator.seedVariable)=\(SeededGenerator.seedOfProcess) (\(purpose), \(name))")
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "\(purpose), \(name)")
    return generator.next()
  }
}
