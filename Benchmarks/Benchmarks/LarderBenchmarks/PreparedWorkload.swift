import Larder
import Workloads

/// A workload with the resources of its rounds, from the setup of a benchmark to its teardown.
final class PreparedWorkload: Sendable {
  private struct State {
    let folder: ScratchFolder
    let round: Workload.Round
  }

  private let workload: Workload
  private let state = Locked<State?>(nil)

  init(_ workload: Workload) {
    self.workload = workload
  }

  func prepare() async throws {
    let folder = try ScratchFolder()
    let round = try await workload.prepare(folder)
    state.withLock { $0 = State(folder: folder, round: round) }
  }

  func run() async throws {
    try await state.withLock { $0?.round }?()
  }

  func remove() throws {
    let folder = state.withLock { state in
      defer { state = nil }
      return state?.folder
    }
    try folder?.remove()
  }
}
