// Rays through the scene.
#include "scene.h"

uint64_t rays_traced;

Vec Scene::trace(const Ray &ray, int depth) const
{
    rays_traced++;
    Hit hit = {1e30, {}, {}, nullptr};
    for (const auto &shape : shapes)
        shape->meet(ray, hit);
    if (depth > 5)
        return {0.1, 0.1, 0.1};
    if (!hit.material) {
        double up = ray.to.y * 0.5 + 0.5;
        return Vec{1, 1, 1} * (1 - up) + Vec{0.4, 0.6, 1} * up;
    }
    return hit.material->colour(*this, ray, hit, depth);
}

Vec Scene::light_at(const Hit &hit) const
{
    double light = 0.15;
    for (const Vec &lamp : lamps) {
        Vec way = lamp - hit.place;
        double far = __builtin_sqrt(way.dot(way)), cosine = hit.normal.dot(way) / far;
        if (cosine <= 0)
            continue;
        Hit shade = {far, {}, {}, nullptr};
        bool dark = false;
        for (size_t i = 0; i < shapes.size() && !dark; i++)
            dark = shapes[i]->meet({hit.place, way * (1 / far)}, shade);
        if (!dark)
            light += cosine * 0.8;
    }
    return {light, light, light};
}
