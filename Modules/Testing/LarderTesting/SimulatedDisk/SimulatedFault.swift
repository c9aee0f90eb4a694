/// What a ``SimulatedFileSystem`` does instead of an operation.
public enum SimulatedFault: Sendable, Hashable {
  /// The operation fails with a number of `errno`, like `EIO`, and changes nothing.
  ///
  /// A synchronization of a file that fails loses what was to be synchronized, or a part of it, as real kernels do: it
  /// can still be read, the next synchronization reports success, and power loss shows that it was never written. Only
  /// after `EINTR` all is as before. What a directory was to synchronize is kept for the next time.
  case error(Int32)

  /// The operation is done, and fails all the same with a number of `errno`, as on a network or on a dying disk.
  ///
  /// A synchronization of a file loses what it was to synchronize, as with ``error(_:)``.
  case errorAfterwards(Int32)

  /// A write, or a read, does only a part of what was asked for, and reports how much; any other operation is not affected.
  case shortTransfer

  /// The power goes while the operation runs: it may have been done, or in part; it fails, and so does everything after
  /// it, until ``SimulatedFileSystem/restart()``.
  case powerLoss
}

extension SimulatedFault {
  /// The number of `errno` with which the operation fails; `nil` where it does not fail, or everything does.
  var errorNumber: Int32? {
    switch self {
    case .error(let number), .errorAfterwards(let number): number
    case .shortTransfer, .powerLoss: nil
    }
  }
}
