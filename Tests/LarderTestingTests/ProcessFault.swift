/// What can be wrong with a ``WholeFileMutant``: what shows only in another process, in a process that dies, or in files
/// that were altered.
enum ProcessFault: String, CaseIterable, Sendable {
  /// Only one store of a process can open the file, but any number of processes.
  case locksOnlyItsProcess
  /// The file is written anew in its place, so that it is in pieces for a while.
  case writesInPlace
  /// What was acknowledged is in memory until the store is synchronized or closed.
  case writesLate
  /// A file that cannot be decoded is taken for an empty one.
  case damagedIsEmpty
  /// A file that cannot be read is taken for an empty one.
  case unreadableIsEmpty
  /// A file that cannot be decoded is removed, and opening refused.
  case removesDamaged

  /// The identities of the cases that must find it.
  var detectors: [String] {
    switch self {
    case .locksOnlyItsProcess: ["251"]
    case .writesInPlace: ["252a"]
    case .writesLate: ["252"]
    case .damagedIsEmpty: ["250", "250a", "250b"]
    case .unreadableIsEmpty: ["250c"]
    case .removesDamaged: ["250", "250a"]
    }
  }
}
