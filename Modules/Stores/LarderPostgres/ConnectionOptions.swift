#if Postgres
import CPostgres
import Foundation

/// One of the servers of a connection, or an address of it.
struct Host: Sendable, Equatable {
  /// The keywords that name it, for the library.
  var keywords: [String: String]

  /// Returns the hosts of a connection, each with one address, or one host without keywords if the library itself must
  /// choose between them.
  ///
  /// Each gets its share of the time limit, because the library would spend all of it on the first one.
  ///
  /// - Parameter options: The options of the connection; see ``ConnectionOptions/effective(for:)``.
  static func all(of options: [String: String]) -> [Host] {
    func list(_ keyword: String) -> [String] {
      options[keyword].map { $0.split(separator: ",", omittingEmptySubsequences: false).map { String($0) } } ?? []
    }
    let (names, addresses, ports) = (list("host"), list("hostaddr"), list("port"))
    let count = max(names.count, addresses.count)
    // The library knows the default, refuses lists of different lengths, and prefers standbys among all hosts.
    guard count > 0, [0, count].contains(names.count), [0, count].contains(addresses.count),
      [0, 1, count].contains(ports.count), options["target_session_attrs"] != "prefer-standby"
    else {
      return [Host(keywords: [:])]
    }
    let hosts = (0..<count).map { index in
      var host = Host(keywords: [:])
      if !names.isEmpty { host.keywords["host"] = names[index] }
      if !addresses.isEmpty { host.keywords["hostaddr"] = addresses[index] }
      if !ports.isEmpty { host.keywords["port"] = ports[ports.count == 1 ? 0 : index] }
      return host
    }
    return options["load_balance_hosts"] == "random" ? hosts.shuffled() : hosts
  }

  /// Returns the host with each of its addresses, of which the library would wait for the first only.
  ///
  /// - Parameter resolve: A function that returns the addresses of a name, or none if they are not found.
  func resolved(_ resolve: (String) -> [String] = Host.addresses) -> [Host] {
    // A path is the folder of a socket.
    guard let name = keywords["host"], !name.isEmpty, !name.hasPrefix("/"), !name.hasPrefix("@"),
      keywords["hostaddr", default: ""].isEmpty
    else { return [self] }
    let addresses = resolve(name)
    return addresses.isEmpty ? [self] : addresses.map { Host(keywords: keywords.merging(["hostaddr": $0]) { $1 }) }
  }

  /// Returns the addresses of a name, in the order of the system's preference.
  static func addresses(of name: String) -> [String] {
    var hints = addrinfo()
    hints.ai_family = AF_UNSPEC
    #if canImport(Darwin)
    hints.ai_socktype = SOCK_STREAM
    #else
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    #endif
    var first: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(name, nil, &hints, &first) == 0 else { return [] }
    defer { freeaddrinfo(first) }
    return sequence(first: first, next: { $0?.pointee.ai_next }).compactMap { entry in
      guard let entry else { return nil }
      return withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(NI_MAXHOST)) { text in
        let status = getnameinfo(
          entry.pointee.ai_addr, entry.pointee.ai_addrlen, text.baseAddress, socklen_t(text.count), nil, 0,
          NI_NUMERICHOST)
        return status == 0 ? text.baseAddress.map { String(cString: $0) } : nil
      }
    }
  }
}

/// The options of a connection, as libpq understands them.
enum ConnectionOptions {
  /// Returns the values that a connection itself contains, or `nil` if libpq does not understand it.
  static func parsed(_ connection: String) -> [String: String]? {
    var message: UnsafeMutablePointer<CChar>?
    guard let options = PQconninfoParse(connection, &message) else {
      PQfreemem(message)
      return nil
    }
    return values(of: options)
  }

  /// Returns the values with which libpq would connect, also those of `PG…` variables and service files.
  static func effective(for connection: String) -> [String: String] {
    // The mode that does not exist ends the attempt after all options were read, and before anything is sent.
    let attempt = withCStrings(["dbname", "sslmode"]) { keywords in
      withCStrings([connection, "none"]) { PQconnectStartParams(keywords, $0, 1) }
    }
    defer { PQfinish(attempt) }
    return PQconninfo(attempt).map { values(of: $0) } ?? [:]
  }

  private static func values(of options: UnsafeMutablePointer<PQconninfoOption>) -> [String: String] {
    defer { PQconninfoFree(options) }
    var values: [String: String] = [:]
    var option = options
    while let keyword = option.pointee.keyword {
      if let value = option.pointee.val { values[String(cString: keyword)] = String(cString: value) }
      option += 1
    }
    return values
  }
}

/// Calls a closure with an array of C strings that ends with NULL.
func withCStrings<Result>(_ strings: [String], _ body: ([UnsafePointer<CChar>?]) -> Result) -> Result {
  func next(_ rest: ArraySlice<String>, _ pointers: [UnsafePointer<CChar>?]) -> Result {
    guard let first = rest.first else { return body(pointers + [nil]) }
    return first.withCString { next(rest.dropFirst(), pointers + [$0]) }
  }
  return next(strings[...], [])
}
#endif
