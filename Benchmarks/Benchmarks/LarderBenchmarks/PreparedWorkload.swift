import Workloads

/// A workload with all that its rounds need, in a folder that goes with it.
final class PreparedWorkload: Sendable {
  let round: Workload.Round
  private let folder: ScratchFolder

  init(_ workload: Workload) async throws {
    folder = try ScratchFolder()
    round = try await workload.prepare(folder)
  }

  deinit {
    // What is left in the folder for temporary files does no harm.
    try? folder.remove()
  }
}
