import Foundation
package import Larder
import LarderFiles
package import LarderTesting
import Testing

/// The trials of a file-based store on the simulated disk, each of which prints its seed.
///
/// The environment variable `LARDER_CUTS` sets the minimum number of power cuts. `LARDER_STEPS` sets the length of the
/// short
/// histories, all of which then run with every fault. `make soak` sets both.
package struct DiskTrials<Store: DataStore>: Sendable where Store.Value == Int {
  /// The trial, which opens the store on a disk.
  package let trial: DiskTrial<Store>

  private let name: String
  private let cuts: Int
  private let faults: Int
  private let historyLength: Int
  private let historyShare: Double
  private let faultKinds: [SimulatedFault]

  /// Creates the trials of a store.
  ///
  /// - Parameters:
  ///   - name: The name of the store in failures.
  ///   - cuts: The number of power cuts, if the environment does not set it.
  ///   - faults: The number of failing operations. If the environment sets the number of cuts, half of that is used
  ///     instead.
  ///   - historyLength: The length of the longest short histories, in steps, if the environment does not set it.
  ///   - historyShare: The share of the longest histories that runs, between 0 and 1, if the environment does not set
  ///     it.
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

  /// Loses power at every operation of random histories.
  package func losePower() async throws {
    let seed = seed(for: "power cuts")
    let start = ContinuousClock.now
    let count = try await trial.losePower(cuts: cuts, seed: seed)
    #expect(count >= cuts)
    print("\(count) power cuts (\(name)) in \(ContinuousClock.now - start)")
  }

  /// Fails every operation of random histories.
  package func fail() async throws {
    let seed = seed(for: "failures")
    let start = ContinuousClock.now
    let count = try await trial.fail(faults: faults, seed: seed, errorNumbers: [EIO, ENOSPC, EINTR, EMFILE])
    #expect(count >= faults)
    print("\(count) failures (\(name)) in \(ContinuousClock.now - start)")
  }

  /// Runs short histories with every fault at every operation.
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
