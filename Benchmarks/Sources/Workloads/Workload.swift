/// Something whose time is measured, round after round.
public struct Workload: Sendable {
  /// Does the work of one round.
  public typealias Round = @Sendable () async throws -> Void

  /// What is done.
  public let name: String

  /// How many operations one round makes; times are given for one operation.
  public let operationCount: Int

  /// Makes what the rounds need, in the given folder.
  public let prepare: @Sendable (ScratchFolder) async throws -> Round

  init(_ name: String, operationCount: Int = 1, prepare: @escaping @Sendable (ScratchFolder) async throws -> Round) {
    self.name = name
    self.operationCount = operationCount
    self.prepare = prepare
  }
}
