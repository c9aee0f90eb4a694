import ArgumentParser
import Larder

/// How a verb that only reads opens its store.
struct AccessOption: ParsableArguments {
  /// The flags, of which one may be given.
  enum Access: EnumerableFlag {
    case readOnly
    case readWrite
    case immutable

    static func help(for value: Access) -> ArgumentHelp? {
      switch value {
      case .readOnly: "Leave every file of the store as it is, and share its lock with other readers (default)."
      case .readWrite: "Open the store as a verb that writes does, which creates a lock file that is missing."
      case .immutable: "Take no lock: you promise that no one writes to the files meanwhile."
      }
    }
  }

  @Flag(exclusivity: .exclusive) var access: Access?

  /// What the store may do with its files.
  var storeAccess: StoreAccess {
    switch access {
    case nil, .readOnly: .readOnly
    case .readWrite: .readWrite
    case .immutable: .immutable
    }
  }
}
