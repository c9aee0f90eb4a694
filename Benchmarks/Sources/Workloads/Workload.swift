/// Work whose time is measured, round after round.
public struct Workload: Sendable {
  /// A closure that does the work of one round.
  public typealias Round = @Sendable () async throws -> Void

  /// The name of the workload.
  public let name: String

  /// The number of operations in one round.
  ///
  /// Times are for one operation.
  public let operationCount: Int

  /// A closure that prepares the rounds in the given folder.
  public let prepare: @Sendable (ScratchFolder) async throws -> Round

  init(_ name: String, operationCount: Int = 1, prepare: @escaping @Sendable (ScratchFolder) async throws -> Round) {
    self.name = name
    self.operationCount = operationCount
    self.prepare = prepare
  }
}
