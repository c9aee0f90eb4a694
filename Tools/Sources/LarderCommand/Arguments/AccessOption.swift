import ArgumentParser
import Larder

/// How a verb that only reads opens its store.
struct AccessOption: ParsableArguments {
  /// The flags, of which one may be given.
  enum Access: EnumerableFlag {
    case readOnly
    case immutable

    static func help(for value: Access) -> ArgumentHelp? {
      switch value {
      case .readOnly: "Leave every file of the store as it is, and share its lock with other readers."
      case .immutable: "Take no lock: you promise that no one writes to the files meanwhile."
      }
    }
  }

  @Flag(exclusivity: .exclusive) var access: Access?

  /// What the store may do with its files; without a flag it may write, so that it can create a lock file, say.
  var storeAccess: StoreAccess {
    switch access {
    case nil: .readWrite
    case .readOnly: .readOnly
    case .immutable: .immutable
    }
  }
}
