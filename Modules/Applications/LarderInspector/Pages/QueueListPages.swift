#if Inspector
import Foundation
import HTTPTypes
import Larder

/// The lists of what a queue holds back: leased items, groups and schedules.
extension InspectorPages {
  /// The number of entries of a page of a list, and that of leased items on the page of the queue.
  private static var listedEntries: Int { 50 }
  private static var shownLeases: Int { 10 }

  /// Links to the lists, if the queue has any.
  func listLinks(_ number: Int, _ queue: any InspectedQueue) -> HTML? {
    guard queue.lists != nil else { return nil }
    let links = [("leased", "Leased items"), ("groups", "Groups"), ("schedules", "Schedules")].map {
      page, title -> HTML in
      " <a class=\"button\" href=\"\(Page.address(page, ["store": "\(number)"]))\">\(title)</a>"
    }
    return "\(links)"
  }

  /// The first leased items, for the page of the queue, or `nil` if the queue does not list them.
  func firstLeases(_ number: Int, _ queue: any InspectedQueue) async throws -> HTML? {
    guard let lists = queue.lists else { return nil }
    let page = try await lists.leasedItems(limit: Self.shownLeases, after: nil)
    let more: HTML? =
      page.next == nil
      ? nil
      : "<p class=\"actions\"><a class=\"button\" href=\"\(Page.address("leased", ["store": "\(number)"]))\">All leased items</a></p>"
    return "<h2>Held by consumers</h2>\(leaseTable(number, page))\(more)"
  }

  func leasedItems(_ fields: FormFields) async throws -> Page {
    try await list(fields, "leased", title: "Leased items") { number, lists, position in
      let page = try await lists.leasedItems(limit: Self.listedEntries, after: position)
      return (leaseTable(number, page), page.next)
    }
  }

  func groups(_ fields: FormFields) async throws -> Page {
    try await list(fields, "groups", title: "Groups") { number, lists, position in
      let page = try await lists.groups(limit: Self.listedEntries, after: position)
      let rows = page.entries.map { group -> HTML in
        let count = "\(group.count)\(group.count < QueueGroup.countLimit ? "" : " or more")"
        let blocker: HTML =
          group.blocker.map { item in
            "\(link(number, item)), \(item.isLeased ? "leased" : "delayed") until \(time(item.deadline))"
          } ?? "<span class=\"quiet\">none</span>"
        return """
          <tr><th scope="row">\(Readable.key(group.name))</th><td class="number" data-label="Items">\(count)</td><td data-label="Blocked by">\(blocker)</td></tr>
          """
      }
      let table = table(
        rows, isLast: page.next == nil, empty: "No group has items.",
        head: """
          <th scope="col">Group</th><th scope="col" class="number">Items</th><th scope="col">Blocked by</th>
          """)
      return (
        "<p>Of each group, one item at a time is delivered. An item that is leased or delayed holds back the others.</p>\(table)",
        page.next
      )
    }
  }

  func schedules(_ fields: FormFields) async throws -> Page {
    try await list(fields, "schedules", title: "Schedules") { _, lists, position in
      let page = try await lists.schedules(limit: Self.listedEntries, after: position)
      let rows = page.entries.map { schedule -> HTML in
        let date: HTML =
          schedule.lastDueDate.map { "\(time($0))" } ?? "<span class=\"problem\">the record is damaged</span>"
        return
          "<tr><th scope=\"row\">\(Readable.key(schedule.name))</th><td data-label=\"Last due date\">\(date)</td></tr>"
      }
      let table = table(
        rows, isLast: page.next == nil, empty: "No schedule has enqueued items.",
        head: "<th scope=\"col\">Schedule</th><th scope=\"col\">Last due date</th>")
      return (
        "<p>The rule of a schedule, and so its next due date, is in the programs that run it.</p>\(table)", page.next
      )
    }
  }

  /// Returns the page of a list, with a link to the next one.
  private func list(
    _ fields: FormFields, _ path: String, title: String,
    _ content: (Int, any InspectableQueue, StoreKey?) async throws -> (HTML, next: StoreKey?)
  ) async throws -> Page {
    let (number, store, queue) = try queue(fields)
    guard let lists = queue.lists else { throw PageFailure(.notFound, "this queue has no such list") }
    let (content, next) = try await content(number, lists, fields.key("after"))
    let link: HTML? = next.map { next in
      let address = Page.address(path, ["store": "\(number)", "after": next.hexadecimal])
      return
        "<nav class=\"pages\" aria-label=\"Pages\"><a class=\"button\" data-key=\"n\" href=\"\(address)\">Next</a></nav>"
    }
    return Page(
      title: title, crumbs: queueCrumbs(number, store),
      content: "<h1>\(title) of \(store.name)</h1>\(content)\(link)",
      liveAddress: Page.address("state", ["store": "\(number)"]))
  }

  private func leaseTable(_ number: Int, _ page: QueuePage<HeldItem>) -> HTML {
    let rows = page.entries.map { item -> HTML in
      """
      <tr><th scope="row">\(link(number, item))</th><td data-label="Group">\(item.group.map(Readable.key) ?? "–")</td>
      <td class="number" data-label="Attempt">\(item.attempt)</td><td data-label="Leased until">\(time(item.deadline))</td></tr>
      """
    }
    return table(
      rows, isLast: page.next == nil, empty: "No consumer has an item.",
      head: """
        <th scope="col">Id</th><th scope="col">Group</th><th scope="col" class="number">Attempt</th><th scope="col">Leased until</th>
        """)
  }

  /// A table, or a sentence if it has no rows.
  private func table(_ rows: [HTML], isLast: Bool, empty: String, head: HTML) -> HTML {
    guard rows.isEmpty else {
      return """
        <div class="table stacked"><table><thead><tr>\(head)</tr></thead>
        <tbody>\(rows)</tbody></table></div>
        """
    }
    return "<p class=\"empty\">\(isLast ? empty : "None in this part of the queue.")</p>"
  }

  private func link(_ number: Int, _ item: HeldItem) -> HTML {
    let address = Page.address("entry", ["store": "\(number)", "key": item.key.hexadecimal])
    return "<a href=\"\(address)\">\(Readable.key(item.key))</a>"
  }

  private func time(_ date: Date) -> String { date.ISO8601Format() }
}
#endif
