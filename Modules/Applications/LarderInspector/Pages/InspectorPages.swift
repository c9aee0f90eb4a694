#if Inspector
import HTTPTypes
import Larder

/// The pages about a store and its entries.
struct InspectorPages: Sendable {
  /// The number of bytes of values that a page of keys reads at most, for their sizes and previews.
  static let previewedBytes = 4 << 20

  let stores: [InspectedStore]
  let allowsChanges: Bool
  let monitors: [ChangeMonitor?]

  /// Returns the store that an address names, with the fields for addresses of its pages.
  func store(_ fields: FormFields) throws -> (number: Int, store: InspectedStore) {
    guard let number = fields["store"].flatMap({ Int($0) }), stores.indices.contains(number) else {
      throw PageFailure(.notFound, "there is no such store; go back to the list of all stores")
    }
    return (number, stores[number])
  }

  /// Returns whether the entries of a store can be changed.
  func allowsChanges(of store: InspectedStore) -> Bool {
    allowsChanges && store.contents.information.access == .readWrite
  }

  /// A Boolean value that indicates whether no store can be changed.
  var isReadOnly: Bool { !stores.contains(where: allowsChanges) }

  func overview() -> Page {
    let rows = stores.enumerated().map { number, store -> HTML in
      let information = store.contents.information
      let queue: HTML? =
        store.contents.queue == nil
        ? nil : " <a class=\"button\" href=\"\(Page.address("queue", ["store": "\(number)"]))\">Queue</a>"
      let more = moreLinks(number, store)
      return """
        <section class="card" data-counts="\(Page.address("counts", ["store": "\(number)"]))">
        <h2><a href="\(Page.address("keys", ["store": "\(number)"]))">\(store.name)</a></h2>
        <ul class="facts">
        <li><span class="term">Entries</span> <span data-count="entries">–</span></li>
        <li><span class="term">On disk</span> <span data-count="size">–</span></li>
        <li><span class="term">Kind</span> <span>\(information.isQueue ? "Queue" : "Store")</span></li>
        <li><span class="term">Values</span> <span>\(information.atRestText)</span></li>
        <li><span class="term">Durability</span> <span>\("\(information.durability)")</span></li>
        <li><span class="term">Shared</span> <span>\(information.sharingText)</span></li>
        <li><span class="term">Access</span> <span>\(allowsChanges(of: store) ? "Read and write" : "Read-only")</span></li>
        </ul>
        <p class="actions"><a class="button" href="\(Page.address("keys", ["store": "\(number)"]))">Keys</a>\(queue)\(more)
        <a class="button" href="\(Page.address("damage", ["store": "\(number)"]))">Verify</a></p>
        <details hidden><summary>Details</summary><ul class="facts" data-details></ul></details>
        </section>
        """
    }
    return Page(title: "Stores", content: "<h1>Stores</h1><div class=\"cards\">\(rows)</div>")
  }

  func keys(_ fields: FormFields) async throws -> Page {
    let (number, store) = try store(fields)
    let prefix = try searchedPrefix(fields)
    let folds = fields["view"] != "list"
    let place: KeyListing.Place =
      if let key = try fields.key("before") { .before(key) } else { .from(try fields.key("from") ?? prefix) }
    let listing = try await KeyListing(prefix: prefix, at: place, folds: folds, keys: store.contents.keys)
    func address(prefix: StoreKey, folds: Bool = folds, from: StoreKey? = nil, before: StoreKey? = nil) -> String {
      Page.address(
        "keys",
        [
          "store": "\(number)", "prefix": prefix.isEmpty ? nil : prefix.hexadecimal, "view": folds ? nil : "list",
          "from": from?.hexadecimal, "before": before?.hexadecimal,
        ])
    }
    var rows: [HTML] = []
    var budget = Self.previewedBytes
    for node in listing.nodes {
      switch node {
      case .folder(let folder):
        rows.append(
          """
          <tr><th scope="row"><a class="folder" href="\(address(prefix: folder))">\(Readable.key(folder))</a></th><td></td><td></td></tr>
          """)
      case .key(let key):
        let address = Page.address("entry", ["store": "\(number)", "key": key.hexadecimal])
        let (size, preview) = await summary(of: key, in: store, budget: &budget)
        rows.append(
          """
          <tr><th scope="row"><a href="\(address)">\(Readable.key(key))</a></th><td class="number">\(size)</td><td class="preview">\(preview)</td></tr>
          """)
      }
    }
    let table: HTML =
      rows.isEmpty
      ? "<p class=\"empty\">No keys\(prefix.isEmpty ? "" : " with this prefix").</p>"
      : """
      <div class="table"><table><thead><tr><th scope="col">Key</th><th scope="col" class="number">Size</th><th scope="col">Value</th></tr></thead>
      <tbody>\(rows)</tbody></table></div>
      """
    func link(_ place: KeyListing.Place?, _ title: String, key: String) -> HTML {
      switch place {
      case .from(let start):
        "<a class=\"button\" data-key=\"\(key)\" href=\"\(address(prefix: prefix, from: start))\">\(title)</a>"
      case .before(let end):
        "<a class=\"button\" data-key=\"\(key)\" href=\"\(address(prefix: prefix, before: end))\">\(title)</a>"
      case nil: "<span class=\"button\" aria-disabled=\"true\">\(title)</span>"
      }
    }
    let add: HTML? =
      allowsChanges(of: store)
      ? "<a class=\"button\" href=\"\(Page.address("edit", ["store": "\(number)", "prefix": prefix.hexadecimal]))\">Add an entry</a>"
      : nil
    let queue: HTML? =
      store.contents.queue == nil
      ? nil : "<a class=\"button\" href=\"\(Page.address("queue", ["store": "\(number)"]))\">Queue</a>"
    let up: HTML? =
      prefix.isEmpty
      ? nil
      : "<a class=\"button\" data-key=\"u\" href=\"\(address(prefix: parent(of: prefix)))\">Up</a>"
    return Page(
      title: prefix.isEmpty ? store.name : Readable.key(prefix),
      crumbs: [Page.Crumb(title: "Stores", address: "./")]
        + (prefix.isEmpty ? [] : [Page.Crumb(title: store.name, address: address(prefix: ""))]),
      content: """
        <h1>\(prefix.isEmpty ? store.name : Readable.key(prefix))</h1>
        <form class="search" action="keys" method="get" role="search">
        <input type="hidden" name="store" value="\(number)">
        <label>Key or prefix <input name="text" data-key="/" autocomplete="off" spellcheck="false" maxlength="1100"></label>
        <label>as <select name="as"><option value="text">text</option><option value="hex">hex</option></select></label>
        <button name="find" value="prefix">Show prefix</button>
        <button name="find" value="key">Open key</button>
        </form>
        \(searchForm(number, prefix: prefix))
        <p class="actions">\(up)\(add)\(queue)\(moreLinks(number, store))
        <a class="button" href="\(address(prefix: prefix, folds: !folds))">\(folds ? "Show as a list" : "Show as a tree")</a>
        <a class="button" href="\(Page.address("damage", ["store": "\(number)"]))">Verify</a></p>
        \(table)
        <nav class="pages" aria-label="Pages">\(link(listing.previous, "Previous", key: "p"))\(link(listing.next, "Next", key: "n"))</nav>
        """,
      liveAddress: liveAddress(number))
  }

  /// Returns the address of the entry that a search names, or `nil` if the search is for a prefix.
  func foundEntry(_ fields: FormFields) throws -> String? {
    guard fields["find"] == "key" else { return nil }
    let (number, _) = try store(fields)
    return Page.address("entry", ["store": "\(number)", "key": try searchedPrefix(fields).hexadecimal])
  }

  /// Returns the address that the script asks for changes, or `nil` if the store does not report any.
  func liveAddress(_ number: Int) -> String? {
    monitors[number] == nil ? nil : Page.address("state", ["store": "\(number)"])
  }

  private func searchedPrefix(_ fields: FormFields) throws -> StoreKey {
    guard let text = fields["text"] else { return try fields.key("prefix") ?? "" }
    let key = fields["as"] == "hex" ? StoreKey(hexadecimal: text) : StoreKey(text)
    guard let key, key.count <= StoreKey.maximumLength else {
      throw PageFailure(
        .badRequest, "a key has at most \(StoreKey.maximumLength) bytes; in hexadecimal, it has two digits for each")
    }
    return key
  }

  /// Links to the pages that only some stores have.
  private func moreLinks(_ number: Int, _ store: InspectedStore) -> [HTML] {
    var links: [HTML] = []
    if store.httpCache != nil {
      links.append(" <a class=\"button\" href=\"\(Page.address("http", ["store": "\(number)"]))\">HTTP cache</a>")
    }
    if store.salvage != nil {
      links.append(" <a class=\"button\" href=\"\(Page.address("salvage", ["store": "\(number)"]))\">Salvage</a>")
    }
    if store.measurements != nil {
      links.append(
        " <a class=\"button\" href=\"\(Page.address("measurements", ["store": "\(number)"]))\">Measurements</a>")
    }
    return links
  }

  private func parent(of prefix: StoreKey) -> StoreKey {
    let bytes = prefix.bytes.dropLast()
    return StoreKey(bytes: bytes[..<(bytes.lastIndex(where: KeyListing.separators.contains).map { $0 + 1 } ?? 0)])
  }

  private func summary(of key: StoreKey, in store: InspectedStore, budget: inout Int) async -> (String, HTML) {
    guard budget > 0 else { return ("", "<span class=\"quiet\">open it to read it</span>") }
    do {
      guard let bytes = try await store.contents.value(forKey: key) else {
        return ("", "<span class=\"quiet\">removed</span>")
      }
      budget -= bytes.count
      let value = InspectedValue(bytes, format: store.contents.format)
      return (Readable.size(bytes.count), "<span class=\"kind\">\(value.kind)</span> \(value.preview)")
    } catch {
      // A page shows the damage in its place.
      return ("", "<span class=\"problem\">\(PageFailure.text(of: error))</span>")
    }
  }
}

/// A count of the changes of a store.
final class ChangeMonitor: Sendable {
  private let count = Locked(0)
  private let observation = Locked<StoreObservation?>(nil)

  /// Observes a store, or returns `nil` if it does not report changes.
  init?(_ contents: any InspectedContents) {
    guard let observation = contents.observe({ [weak self] in self?.count.withLock { $0 &+= 1 } }) else { return nil }
    self.observation.withLock { $0 = observation }
  }

  /// The number of commits that were reported so far.
  var changes: Int { count.withLock { $0 } }
}

extension StoreInformation {
  var sharingText: String {
    switch sharing {
    case .exclusive: "One program"
    case .betweenProcesses: "Programs of this host"
    case .betweenHosts: "All hosts"
    }
  }

  var atRestText: String {
    switch valuesAtRest {
    case .absent: "In memory"
    case .encrypted: "Encrypted"
    case .plain: "Not encrypted"
    case nil: "Unknown"
    }
  }
}
#endif
