package import ArgumentParser
import Foundation
package import LarderCrypto

extension ArgumentHelp {
  /// The help of the option for the password of a key ring.
  package static var passwordFile: ArgumentHelp {
    ArgumentHelp(
      "A file with the password of a password-file: ring. Defaults to asking on the terminal.", valueName: "path")
  }
}

/// The keys of a store's values, as options name them.
package actor EncryptionChoice {
  private let location: KeyRingLocation
  private let passwordFile: String?
  private let purpose: String
  private var keys: ValueKeys?

  package init(location: KeyRingLocation, passwordFile: String?, purpose: String) {
    self.location = location
    self.passwordFile = passwordFile
    self.purpose = purpose
  }

  /// Opens the key ring when it is called first, and returns its keys.
  ///
  /// - Throws: ``CommandFailure`` if the password cannot be read; the errors of the key ring.
  package func valueKeys() async throws -> ValueKeys {
    if let keys { return keys }
    let opened = ValueKeys(ring: try await location.open(passwordFile: passwordFile), purpose: purpose)
    keys = opened
    return opened
  }
}

/// The place of a key ring, as text such as `file:keys.json`.
package struct KeyRingLocation: ExpressibleByArgument, Sendable {
  private enum Kind: String, CaseIterable {
    case file
    case passwordFile = "password-file"
    case secretService = "secret-service"
    case systemdCredential = "systemd-credential"
    case mountedSecret = "mounted-secret"
    case environment

    /// The form of the text after the colon.
    var form: String {
      switch self {
      case .file, .passwordFile, .mountedSecret: "PATH"
      case .secretService: "APPLICATION/NAME"
      case .systemdCredential, .environment: "NAME"
      }
    }
  }

  /// The kinds of places for the help.
  package static let kinds = Kind.allCases.map { "\($0.rawValue):\($0.form)" }.joined(separator: ", ")

  private let kind: Kind
  private let place: String

  /// Parses a place, or returns `nil` if the text does not name one.
  package init?(argument: String) {
    let parts = argument.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[1].isEmpty, let kind = Kind(rawValue: String(parts[0])) else { return nil }
    if kind == .secretService {
      let names = parts[1].split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
      guard names.count == 2, names.allSatisfy({ !$0.isEmpty }) else { return nil }
    }
    self.kind = kind
    place = String(parts[1])
  }

  /// Opens the key ring.
  ///
  /// - Parameter passwordFile: The path of a file with the password, or `nil` to ask on the terminal if there is one.
  /// - Throws: ``CommandFailure`` if the password cannot be read; the errors of the key ring.
  package func open(passwordFile: String?) async throws -> KeyRing {
    try await KeyRing.open(in: try source(passwordFile: passwordFile, isNew: false))
  }

  /// Creates the key ring with one new key.
  ///
  /// - Parameter passwordFile: As for ``open(passwordFile:)``. The terminal is asked twice.
  /// - Throws: ``CommandFailure`` if the password cannot be read or the place has a ring already; the errors of the key
  ///   ring.
  package func create(passwordFile: String?) async throws -> KeyRing {
    let source = try source(passwordFile: passwordFile, isNew: true)
    guard try await source.load() == nil else {
      throw CommandFailure(.usage, "\(self) is a key ring already", advice: "Use it, or give another place.")
    }
    return try await KeyRing.open(in: source, createsIfMissing: true)
  }

  /// Returns the key source, with its password if it needs one.
  private func source(passwordFile: String?, isNew: Bool) throws -> any KeySource {
    guard kind == .passwordFile || passwordFile == nil else {
      throw CommandFailure(.usage, "--password-file is only for a password-file: ring", advice: "Omit it.")
    }
    switch kind {
    case .file: return .file(place)
    case .passwordFile:
      return .passwordFile(place, password: try passwordFile.map(readPassword) ?? askForPassword(twice: isNew))
    case .secretService:
      let names = place.split(separator: "/", maxSplits: 1).map(String.init)
      return .secretService(application: names[0], name: names[1])
    case .systemdCredential: return .systemdCredential(place)
    case .mountedSecret: return .mountedSecret(place)
    case .environment: return .environment(place)
    }
  }

  /// Reads a password from a file, without the line ending.
  private func readPassword(from path: String) throws -> KeyFilePassword {
    let bytes: [UInt8]
    do {
      bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
    } catch {
      throw CommandFailure(.noInput, "cannot read the password from \(path): \(error.localizedDescription)")
    }
    return try KeyFilePassword(fileContent: bytes)
  }

  /// Asks for the password on the terminal, twice for a new one.
  private func askForPassword(twice: Bool) throws -> KeyFilePassword {
    let text = try Self.ask("Password of \(place): ")
    if twice, try Self.ask("The same password again: ") != text {
      throw CommandFailure(.usage, "the two passwords differ", advice: "Try again.")
    }
    return try KeyFilePassword(text)
  }

  private static func ask(_ question: String) throws -> String {
    guard let terminal = fopen("/dev/tty", "r+") else {
      throw CommandFailure(.usage, "there is no terminal to ask for the password", advice: "Give --password-file.")
    }
    fclose(terminal)
    guard let answer = getpass(question), let text = String(validatingCString: answer) else {
      throw CommandFailure(.usage, "the password cannot be read", advice: "Give --password-file.")
    }
    // The C library keeps the answer in memory.
    memset(answer, 0, strlen(answer))
    return text
  }
}

extension KeyRingLocation: CustomStringConvertible {
  /// The place as text.
  package var description: String { "\(kind.rawValue):\(place)" }
}
