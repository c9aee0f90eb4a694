#if HTTPCache
import Larder

/// A process, identified so that other processes can tell whether it has ended.
///
/// This is plain state without any I/O.
struct ProcessIdentity: Sendable, Hashable {
  /// The number of bytes of a place.
  static let placeLength = 16

  /// The number of bytes of an encoded identity.
  static let length = placeLength + 12

  /// The place where the number and the start time mean this process: a hash of the host, its boot, and the
  /// namespaces of its process numbers and times.
  let place: [UInt8]

  /// The number of the process, at least 1.
  let number: UInt32

  /// The time when the process started, in ticks since the boot of its host.
  let start: UInt64

  init(place: [UInt8], number: UInt32, start: UInt64) {
    precondition(place.count == Self.placeLength && number >= 1)
    (self.place, self.number, self.start) = (place, number, start)
  }

  /// Returns the bytes of an identity, or zeros if it is unknown.
  static func bytes(of identity: ProcessIdentity?) -> [UInt8] {
    guard let identity else { return [UInt8](repeating: 0, count: length) }
    var bytes = identity.place
    bytes.append(uint32: Int(identity.number))
    return bytes + identity.start.bigEndianBytes
  }
}

/// The result of looking for a process by its number.
enum ProcessFinding: Sendable, Hashable {
  /// No process has the number.
  case none

  /// A process has the number. It started at this time, in ticks since the boot of its host.
  case started(UInt64)

  /// The system does not say whether there is such a process, or when it started.
  case unknown
}

/// The processes of a host, as one of them sees them.
struct ProcessTable: Sendable {
  /// A closure that looks for a process in the place of ``own``.
  let find: @Sendable (_ number: UInt32) -> ProcessFinding

  private let identify: @Sendable () -> ProcessIdentity?

  /// The process itself, or `nil` if the system does not identify it.
  var own: ProcessIdentity? { identify() }

  /// Creates the table of a process.
  ///
  /// - Parameters:
  ///   - own: The process itself. It is called again each time, because a process that was forked is another one.
  ///   - find: A closure that looks for a process in the place of `own`.
  init(
    own: @escaping @autoclosure @Sendable () -> ProcessIdentity?,
    find: @escaping @Sendable (_ number: UInt32) -> ProcessFinding
  ) {
    (identify, self.find) = (own, find)
  }

  /// Returns whether a process has certainly ended.
  ///
  /// It is `false` in doubt: for an unknown process, and for one of another host, boot or namespace, whose number means
  /// nothing here. A process whose number belongs to a process with another start time has ended.
  func hasEnded(_ process: ProcessIdentity?) -> Bool {
    guard let own, let process, process != own, process.place == own.place else { return false }
    switch find(process.number) {
    case .none: return true
    case .started(let start): return start != process.start
    case .unknown: return false
    }
  }
}

/// The identity of this process, which is read again after the process was forked.
final class OwnIdentity: Sendable {
  private let read: @Sendable () -> ProcessIdentity?
  private let last = Locked<(number: Int32, identity: ProcessIdentity?)?>(nil)

  /// Creates the identity.
  ///
  /// - Parameter read: A closure that reads it from the system.
  init(_ read: @escaping @Sendable () -> ProcessIdentity?) {
    self.read = read
  }

  /// Returns the identity.
  ///
  /// - Parameter number: The number of this process now.
  func identity(ofNumber number: Int32) -> ProcessIdentity? {
    last.withLock { last in
      if let last, last.number == number { return last.identity }
      let identity = read()
      last = (number, identity)
      return identity
    }
  }
}
#endif
