/* SPDX-License-Identifier: BSD-3-Clause */
/* list: an intrusive doubly linked list. */
#ifndef COP_BASE_LIST_H
#define COP_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct cop_list {
	struct cop_list *prev, *next;
};

static inline void cop_list_init(struct cop_list *l)
{
	l->prev = l->next = l;
}
static inline bool cop_list_empty(const struct cop_list *l)
{
	return l->next == l;
}
static inline void cop_list_push_back(struct cop_list *head, struct cop_list *item)
{
	item->prev = head->prev;
	item->next = head;
	head->prev->next = item;
	head->prev = item;
}
static inline void cop_list_push_front(struct cop_list *head, struct cop_list *item)
{
	item->next = head->next;
	item->prev = head;
	head->next->prev = item;
	head->next = item;
}
/* Leaves the item linked to itself, so removing it twice is harmless. */
static inline void cop_list_remove(struct cop_list *item)
{
	item->prev->next = item->next;
	item->next->prev = item->prev;
	cop_list_init(item);
}
/* Removes and returns the first item, or NULL. */
static inline struct cop_list *cop_list_pop_front(struct cop_list *head)
{
	struct cop_list *item = head->next;

	if (item == head)
		return NULL;
	cop_list_remove(item);
	return item;
}
/* Moves all items of from to the end of head. */
static inline void cop_list_splice(struct cop_list *head, struct cop_list *from)
{
	if (cop_list_empty(from))
		return;
	from->next->prev = head->prev;
	head->prev->next = from->next;
	from->prev->next = head;
	head->prev = from->prev;
	cop_list_init(from);
}

#endif
