#if HTTPCache
/// The way the query of a URL counts in the key of its responses.
///
/// ```swift
/// configuration.queryKey = HTTPCacheQueryKey(ignoring: ["utm_*", "fbclid"], ignoresOrder: true)
/// ```
///
/// By default, the key has the whole query. A parameter that is ignored, and the order, are still forwarded to the origin,
/// but all requests that differ only in them share one stored response. The request that comes first decides which one.
///
/// - Important: Ignore only what the origin ignores as well. If a response contains or depends on an ignored parameter, one
///   client can choose the response that all others get.
public struct HTTPCacheQueryKey: Sendable, Hashable {
  /// The names of the parameters that are not in the key.
  ///
  /// Defaults to an empty list. A name that ends with `*` stands for all names with this beginning. Names are compared byte for byte:
  /// letter case counts, and an encoded name such as `%75tm_source` is another one.
  public var ignoredNames: [String]

  /// A Boolean value that indicates whether the key has the parameters in the order of their names.
  ///
  /// Defaults to `false`. Parameters with the same name keep their order.
  public var ignoresOrder: Bool

  /// Creates a key.
  ///
  /// - Parameters:
  ///   - ignoredNames: The names of the parameters that are not in the key. Defaults to an empty list.
  ///   - ignoresOrder: A Boolean value that indicates whether the key has the parameters in the order of their names.
  ///     Defaults to `false`.
  public init(ignoring ignoredNames: [String] = [], ignoresOrder: Bool = false) {
    (self.ignoredNames, self.ignoresOrder) = (ignoredNames, ignoresOrder)
  }

  /// A description of the first name that no parameter can have, or `nil` if all names are valid.
  var problem: String? {
    for name in ignoredNames {
      let rest = name.hasSuffix("*") ? name.dropLast() : name[...]
      if name.isEmpty || rest.utf8.contains(where: { "*&=#".utf8.contains($0) }) {
        return "queryKey must ignore names such as utm_source or utm_*, not \(name.isEmpty ? "an empty one" : name)"
      }
    }
    return nil
  }

  /// Returns the key of an absolute URL, which is in the form of `RequestURL`.
  ///
  /// The key of a key is the same one.
  func key(of url: String) -> String {
    guard !ignoredNames.isEmpty || ignoresOrder, let mark = url.utf8.firstIndex(of: UInt8(ascii: "?")) else {
      return url
    }
    let query = url.utf8[url.utf8.index(after: mark)...]
    var parameters = query.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
      .map { (name: $0.prefix { $0 != UInt8(ascii: "=") }, text: $0) }
    parameters.removeAll { isIgnored($0.name) }
    if ignoresOrder {
      // Sorting is stable only by way of the positions.
      parameters = parameters.enumerated()
        .sorted { left, right in
          left.element.name.elementsEqual(right.element.name)
            ? left.offset < right.offset : left.element.name.lexicographicallyPrecedes(right.element.name)
        }
        .map(\.element)
    }
    // A question mark with nothing behind it has one parameter, whose name is empty.
    guard !parameters.isEmpty else { return String(url[..<mark]) }
    return url[...mark] + parameters.map { String(Substring($0.text)) }.joined(separator: "&")
  }

  private func isIgnored(_ name: Substring.UTF8View) -> Bool {
    ignoredNames.contains { pattern in
      pattern.utf8.last == UInt8(ascii: "*")
        ? name.starts(with: pattern.utf8.dropLast()) : name.elementsEqual(pattern.utf8)
    }
  }
}
#endif
